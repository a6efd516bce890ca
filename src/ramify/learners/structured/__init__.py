"""Joint large-margin models: one problem in which all outputs of a document compete (hsvm, ot)."""
