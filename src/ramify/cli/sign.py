"""``ramify sign``: sign a model for others who trust the key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ramify.cli.console import say
from ramify.errors import InputError
from ramify.persistence import create_keys, sign_model


def sign(
    model: Annotated[Path | None, Argument(help="Model directory to sign.")] = None,
    key: Annotated[Path | None, Option("--key", help="File with your private key.")] = None,
    new_key: Annotated[Path | None, Option("--new-key", help="Make a private key in this file, and a FILE.pub.")] = None,
) -> None:
    """Sign a model, so that others can check who made it.

    Anyone can train a model and write a manifest that fits. A signature says that the owner of a key did. Those who get the
    model give the public key as --trust, to any command that reads models, and no other model is read then. Needs
    ramify[sign].

    \b
    Examples:
      ramify sign --new-key ann.key
      ramify sign out --key ann.key
      ramify serve out --trust ann.key.pub
    """
    if (model is None) != (key is None) or (model is None) == (new_key is None):
        raise InputError("give a model and --key FILE to sign it, or --new-key FILE to make a key.")
    if new_key is not None:
        public = create_keys(new_key)
        say(f"Your private key is in {new_key}: keep it to yourself. Give {public} to those who shall trust your models.")
    elif model is not None and key is not None:
        sign_model(model, key)
        say(f"Model in {model} signed.")
