"""``kubectl auth can-i``: may this user do that? Answered by the authorizer, never stored."""

import msgspec

from elbowroom.apiserver import authorizer, intake, schema, statuses
from elbowroom.apiserver.store import Store
from elbowroom.wire import ApiRequest, ApiResponse

_PLURAL, _KIND = "selfsubjectaccessreviews", "SelfSubjectAccessReview"
_GROUP = "authorization.k8s.io"


def is_review(request: ApiRequest) -> bool:
    """Is it about what somebody may do?"""
    return request.group == _GROUP and request.resource == _PLURAL


def answer(request: ApiRequest, store: Store) -> ApiResponse:
    """The review with its status."""
    if request.verb != "create":
        raise statuses.method_not_allowed()
    field = schema.find(_GROUP, "v1", _KIND)
    assert field is not None
    options = intake.write_options(request, "CreateOptions")
    review, warnings = intake.decoded_body(request, field, _GROUP, "v1", _KIND, options)
    wanted = review.get("spec", {}).get("resourceAttributes")
    if wanted is None:
        path = review.get("spec", {}).get("nonResourceAttributes", {}).get("path", "")
        may = authorizer.MASTERS in request.groups or path in ("/healthz", "/livez", "/readyz", "/version")
    else:
        asked = ApiRequest(
            wanted.get("verb", ""),
            wanted.get("resource", ""),
            wanted.get("group", ""),
            namespace=wanted.get("namespace", ""),
            name=wanted.get("name", ""),
            subresource=wanted.get("subresource", ""),
            user=request.user,
            groups=request.groups,
        )
        may = authorizer.allowed(asked, store)
    document = {
        "kind": _KIND,
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {},
        "spec": review.get("spec", {}),
        "status": {"allowed": may},
    }
    return ApiResponse(201, msgspec.json.encode(document), tuple(warnings))
