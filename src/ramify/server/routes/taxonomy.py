"""Browse and search the taxonomy of a model."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Any

from fastapi import APIRouter, Query

from ramify.server.dependencies import Parts, RequestedModel, refusals
from ramify.server.model_registry import ServedModel
from ramify.server.schemas import Matches, TaxonomyNode, TaxonomyPart

MOST_WORDS, MOST_ALIKE = 8, 5_000  # words of a query to put right, and words to compare each with

router = APIRouter(prefix="/v1/taxonomy", tags=["taxonomy"])


@router.get("", responses=refusals(404))
async def get_part(
    served: RequestedModel,
    node: Annotated[
        str | None, Query(min_length=1, max_length=2_000, description="A label; the top level when left out.")
    ] = None,
    offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> TaxonomyPart:
    """A node, its ancestors, and some of its children."""
    taxonomy = served.taxonomy
    found = None if node is None else served.find(node)
    children = taxonomy.roots if found is None else taxonomy.children_of(found)
    above = [] if found is None else taxonomy.nodes_to(found)[:-1]
    return TaxonomyPart(
        model=served.name,
        node=None if found is None else to_node(served, found),
        above=[to_node(served, one) for one in above],
        children=[to_node(served, int(one)) for one in children[offset : offset + limit]],
        total=len(children),
    )


@router.get("/search", responses=refusals(404))
async def search(
    services: Parts,
    served: RequestedModel,
    query: Annotated[str, Query(max_length=200, description="Words that must all be in the path of a node.")],
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Matches:
    """Nodes whose path has every word of the query."""
    found = await services.slow_pool.run(services.settings.limits.seconds, find_nodes, served, query)
    nearest = None if found else await services.slow_pool.run(services.settings.limits.seconds, nearest_query, served, query)
    matches = [to_node(served, node) for node in found[:limit]]
    return Matches(model=served.name, matches=matches, total=len(found), did_you_mean=nearest)


def find_nodes(served: ServedModel, query: str) -> list[int]:
    """Nodes that a query finds: first those whose own title has all its words, then the others; higher nodes first."""
    words = query.casefold().split()
    if not words:
        return []
    titles, depth = served.taxonomy.titles, served.taxonomy.depth
    found = [node for node, line in enumerate(served.search_lines) if all(word in line for word in words)]
    return sorted(found, key=lambda node: (not all(word in titles[node].casefold() for word in words), int(depth[node])))


def nearest_query(served: ServedModel, query: str) -> str | None:
    """The query with words of the taxonomy in place of mistyped ones, if it then finds something."""
    words = query.casefold().split()[:MOST_WORDS]
    near = [
        word if any(word in line for line in served.search_lines) else _nearest(word, served.search_words) for word in words
    ]
    found = " ".join(word for word in near if word)
    return found if all(near) and find_nodes(served, found) else None


def _nearest(word: str, known: dict[tuple[str, int], list[str]]) -> str | None:
    """A known word like a mistyped one: with the same first letter, and about as long; no others, since each takes time."""
    alike = [one for length in range(len(word) - 2, len(word) + 3) for one in known.get((word[:1], length), ())]
    return next(iter(get_close_matches(word, alike[:MOST_ALIKE], n=1, cutoff=0.7)), None)


def to_node(served: ServedModel, node: int) -> TaxonomyNode:
    """A node, the size of its subtree, and its figures."""
    taxonomy, sizes = served.taxonomy, served.classifier.sizes_
    quality: Any = served.quality.get(taxonomy.names[node])
    return TaxonomyNode(
        name=taxonomy.names[node],
        title=taxonomy.titles[node],
        label=served.label_of(node),
        path=list(taxonomy.path_of(node)),
        depth=int(taxonomy.depth[node]),
        children=len(taxonomy.children_of(node)),
        leaves=served.leaves_below[node],
        documents=None if sizes is None else int(sizes[node]),
        quality=quality,
    )
