"The skill of agent://shapes: the code behind its capabilities."

from __future__ import annotations

from shapes import (
    A1_2f8fRequest,
    A1_2f8fResponse,
    A1_f55fRequest,
    A1_f55fResponse,
    AnnotatedRequest,
    AnnotatedResponse,
    Call,
    CloseRequest,
    CloseResponse,
    CornersRequest,
    CornersResponse,
    EmptyRequest,
    EmptyResponse,
    EndlessRequest,
    EndlessResponse,
    EnumsRequest,
    EnumsResponse,
    GetUser_5d95Request,
    GetUser_5d95Response,
    GetUser_bf1eRequest,
    GetUser_bf1eResponse,
    GetUser_e28eRequest,
    GetUser_e28eResponse,
    ImportRequest,
    ImportResponse,
    InheritedRequest,
    InheritedResponse,
    IntersectionsRequest,
    IntersectionsResponse,
    LiteralRequest,
    LiteralResponse,
    LooseRequest,
    LooseResponse,
    MapsRequest,
    MapsResponse,
    MergesRequest,
    MergesResponse,
    NamesRequest,
    NamesResponse,
    NullableRequest,
    NullableResponse,
    ServeRequest,
    ServeResponse,
    SkillError,
    TaggedUnionRequest,
    TaggedUnionResponse,
    TreeRequest,
    TreeResponse,
    X3dRenderRequest,
    X3dRenderResponse,
    serve,
)


def loose(payload: LooseRequest, call: Call) -> LooseResponse:
    "No schemas */ and \"\"\" a hostile\ndescription: \\ pyright: basic\n@ ts-nocheck"
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("loose is not written yet")


def nullable(payload: NullableRequest, call: Call) -> NullableResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("nullable is not written yet")


def tagged_union(payload: TaggedUnionRequest, call: Call) -> TaggedUnionResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("tagged-union is not written yet")


def tree(payload: TreeRequest, call: Call) -> TreeResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("tree is not written yet")


def endless(payload: EndlessRequest, call: Call) -> EndlessResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("endless is not written yet")


def intersections(payload: IntersectionsRequest, call: Call) -> IntersectionsResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("intersections is not written yet")


def empty(payload: EmptyRequest, call: Call) -> EmptyResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("empty is not written yet")


def maps(payload: MapsRequest, call: Call) -> MapsResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("maps is not written yet")


def get_user_5d95(payload: GetUser_5d95Request, call: Call) -> GetUser_5d95Response:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("get-user is not written yet")


def get_user_bf1e(payload: GetUser_bf1eRequest, call: Call) -> GetUser_bf1eResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("get_user is not written yet")


def get_user_e28e(payload: GetUser_e28eRequest, call: Call) -> GetUser_e28eResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("getUser is not written yet")


def call_3d_render(payload: X3dRenderRequest, call: Call) -> X3dRenderResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("3d-render is not written yet")


def import_(payload: ImportRequest, call: Call) -> ImportResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("import is not written yet")


def close(payload: CloseRequest, call: Call) -> CloseResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("close is not written yet")


def serve_(payload: ServeRequest, call: Call) -> ServeResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("serve is not written yet")


def names(payload: NamesRequest, call: Call) -> NamesResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("names is not written yet")


def enums(payload: EnumsRequest, call: Call) -> EnumsResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("enums is not written yet")


def corners(payload: CornersRequest, call: Call) -> CornersResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("corners is not written yet")


def merges(payload: MergesRequest, call: Call) -> MergesResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("merges is not written yet")


def annotated(payload: AnnotatedRequest, call: Call) -> AnnotatedResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("annotated is not written yet")


def inherited(payload: InheritedRequest, call: Call) -> InheritedResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("inherited is not written yet")


def a1(payload: A1_f55fRequest, call: Call) -> A1_f55fResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("a1 is not written yet")


def a_1(payload: A1_2f8fRequest, call: Call) -> A1_2f8fResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("a-1 is not written yet")


def literal(payload: LiteralRequest, call: Call) -> LiteralResponse:
    # Write it here, and return the response. With async def, it may await.
    raise SkillError("literal is not written yet")


if __name__ == "__main__":
    serve(
        {
            "loose": loose,
            "nullable": nullable,
            "tagged-union": tagged_union,
            "tree": tree,
            "endless": endless,
            "intersections": intersections,
            "empty": empty,
            "maps": maps,
            "get-user": get_user_5d95,
            "get_user": get_user_bf1e,
            "getUser": get_user_e28e,
            "3d-render": call_3d_render,
            "import": import_,
            "close": close,
            "serve": serve_,
            "names": names,
            "enums": enums,
            "corners": corners,
            "merges": merges,
            "annotated": annotated,
            "inherited": inherited,
            "a1": a1,
            "a-1": a_1,
            "literal": literal,
        }
    )
