"""Browse and search the taxonomy of a model."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query

from ramify.server.dependencies import Parts, RequestedModel, refusals
from ramify.server.model_registry import ServedModel
from ramify.server.schemas import Matches, TaxonomyNode, TaxonomyPart

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
    return Matches(model=served.name, matches=[to_node(served, node) for node in found[:limit]], total=len(found))


def find_nodes(served: ServedModel, query: str) -> list[int]:
    """Nodes that a query finds: first those whose own title has all its words, then the others; higher nodes first."""
    words = query.casefold().split()
    if not words:
        return []
    titles, depth = served.taxonomy.titles, served.taxonomy.depth
    found = [node for node, line in enumerate(served.search_lines) if all(word in line for word in words)]
    return sorted(found, key=lambda node: (not all(word in titles[node].casefold() for word in words), int(depth[node])))


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
