"""Bodies, the field tree, and decoding by it."""

import base64
import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.apiserver import schema

REGEX = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def kind(name: str, group: str = "", **options: bool) -> schema.Field:
    field = schema.find(group, "v1", name, **options)
    assert field is not None
    return field


POD = kind("Pod")
ORDINARY = Path(__file__).with_name("ordinary.yaml")


def decoded(field: schema.Field, document: Any, **options: bool) -> Any:
    found = schema.decode(field, document, **options)
    assert (found.error, found.unknown) == (None, [])
    return found.document


def a_pod(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


# ---------------------------------------------------------------- JSON bodies


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("", "unexpected end of JSON input"),
        ('{"spec":', "unexpected end of JSON input"),
        ('{"a": "b', "unexpected end of JSON input"),
        ("{}x", "invalid character 'x' after top-level value"),
        ('{"a":1}{"b":2}', "invalid character '{' after top-level value"),
        ("spec: {}", "invalid character 's' looking for beginning of value"),
        ("{'a': 1}", r"invalid character '\'' looking for beginning of object key string"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b"}', "invalid character '\"' after object key:value pair"),
        ('{"a":1,}', "invalid character '}' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[tru]", "invalid character ']' in literal true (expecting 'e')"),
        ("tru", "invalid character ' ' in literal true (expecting 'e')"),
        ("-", "invalid character ' ' in numeric literal"),
        ("1.", "invalid character ' ' after decimal point in numeric literal"),
        ('"\\u12', r"invalid character ' ' in \u hexadecimal character escape"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ("\ufeff{}", "invalid character 'ï' looking for beginning of value"),
        ("{}\x85", "invalid character 'Â' after top-level value"),
        ("\x07", r"invalid character '\a' looking for beginning of value"),
        ("[1e999", "unexpected end of JSON input"),
        ("[NaN]", "invalid character 'N' looking for beginning of value"),
        ("[Infinity]", "invalid character 'I' looking for beginning of value"),
        ("[-x]", "invalid character 'x' in numeric literal"),
        ("[1.x]", "invalid character 'x' after decimal point in numeric literal"),
        ("[1ex]", "invalid character 'x' in exponent of numeric literal"),
        ("[01]", "invalid character '1' after array element"),
        ('["a\nb"]', r"invalid character '\n' in string literal"),
        (r'["\q"]', "invalid character 'q' in string escape code"),
        (r'["\u12g4"]', r"invalid character 'g' in \u hexadecimal character escape"),
        ("[" * 101 + "]" * 101, "exceeded max depth"),
        ("[" * 100_000, "exceeded max depth"),
        (f"[{'1' * 65}]", "json: a number of 65 characters is too long"),
        ("[1e999]", "json: cannot unmarshal number 1e999 into Go value of type float64"),
        (r'["\ud800"]', "invalid surrogate pair in a string"),
    ],
)
def test_a_malformed_body_is_refused_in_gos_words(body: str, message: str) -> None:
    with pytest.raises(schema.MalformedBodyError) as refused:
        schema.parse_json(body.encode())
    assert str(refused.value) == message


def test_bytes_that_are_no_utf8_are_refused() -> None:
    with pytest.raises(schema.MalformedBodyError):
        schema.parse_json(b'{"a":"\xff"}')


def test_fields_given_twice_are_told_with_their_paths_and_the_last_counts() -> None:
    body = b'{"m":{},"m":{"n":1},"s":{"c":[{"x":1,"x":2,"y":{"cpu":1,"cpu":2}}]},"m":{"n":3}}'
    parsed = schema.parse_json(body)
    assert parsed.value == {"m": {"n": 3}, "s": {"c": [{"x": 2, "y": {"cpu": 2}}]}}
    assert parsed.warnings == ['duplicate field "m"', 'duplicate field "s.c[0].x"', 'duplicate field "s.c[0].y.cpu"']


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(_json)
def test_what_json_writes_is_read_back(value: Any) -> None:
    assert schema.parse_json(json.dumps(value).encode(errors="surrogatepass")).value == value


def _typed(value: Any) -> Any:
    """The value so that types, and how numbers were written, count."""
    if isinstance(value, dict):
        return {name: _typed(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_typed(inner) for inner in value]
    return type(value), getattr(value, "text", value)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.text(max_size=4)
        | st.sampled_from([1.0, -0.0, 1.5e300, 2.25]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
        max_leaves=12,
    )
)
def test_a_body_means_the_same_however_briefly_it_is_written(value: Any) -> None:
    brief = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    assert _typed(schema.parse_json(brief).value) == _typed(schema.parse_json(b" " + brief).value)


@given(st.text('{}[]",:019.eE+-ab', max_size=24).map(str.encode))
def test_a_body_is_refused_or_warned_of_however_briefly_it_is_written(body: bytes) -> None:
    def read(body: bytes) -> Any:
        try:
            parsed = schema.parse_json(body)
        except schema.MalformedBodyError:
            return None
        return _typed(parsed.value), parsed.duplicates

    assert read(body) == read(b" " + body)


@given(st.binary(max_size=60) | st.text("{}[]\",:0123456789.eE+-truefalsn\\u \n'", max_size=40).map(str.encode))
def test_no_body_raises_anything_but_a_refusal_with_a_reason(body: bytes) -> None:
    for parse in (schema.parse_json, schema.parse_yaml, schema.parse_protobuf, lambda b: schema.parse_protobuf(b"k8s\0" + b)):
        try:
            parse(body)
        except schema.MalformedBodyError as why:
            assert str(why)


def test_a_surrogate_pair_is_one_character() -> None:
    assert schema.parse_json(rb'["\ud83d\ude00"]').value == ["\U0001f600"]


# ---------------------------------------------------------------- YAML bodies


def test_yaml_is_read_as_the_json_that_it_means() -> None:
    body = b"a: 1\nb: [x, yes, 2001-01-01]\n2: ~\ntrue: z\n---\nsecond: *ignored\n"
    assert schema.parse_yaml(body).value == {"a": 1, "b": ["x", True, "2001-01-01"], "2": None, "true": "z"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True), ("off", False), ("N", False), ("nULL", "nULL"), ("~", None), ("", None), ('"yes"', "yes"),
        ("!!str yes", "yes"),
        ("0o10", 8), ("010", 8), ("08", 8), ("0x1F", 31), ("-0b11", -3), ("1_000", 1000), ("+1", 1), ("1e3", 1000), ("1.50", 1.5),
        ("12:30:00", "12:30:00"), ("2020-01-01", "2020-01-01"), ("1e400", "1e400"), (".5", 0.5), ("1.5e-7", 1.5e-7),
        ("18446744073709551615", 18446744073709551615), ("!!float 1", 1), ('!!int "1"', 1), ("!x y", "y"), ("=", "="), ("<<", "<<"),
        ("!!binary eHk=", "xy"), ("!!set {x}", {"x": None}), ("&x 1", 1), ("[&x {b: 1}, *x]", [{"b": 1}, {"b": 1}]),
        ("[&x {b: 1}, {<<: *x, c: 2}]", [{"b": 1}, {"b": 1, "c": 2}]),
    ],
)  # fmt: skip
def test_a_plain_word_means_in_yaml_what_gos_loader_makes_of_it(text: str, value: Any) -> None:
    """Compared with sigs.k8s.io/yaml v1.6.0."""
    assert schema.parse_yaml(f"a: {text}".encode()).value == {"a": value}


@pytest.mark.parametrize(
    ("number", "text"),
    [("1e21", "1e+21"), ("1.5e-7", "1.5e-7"), ("1.50", "1.5"), ("123456789012345678901234567890", "1.2345678901234568e+29"),
     ("18446744073709551616", "18446744073709552000")],
)  # fmt: skip
def test_a_number_of_yaml_is_written_by_go_first(number: str, text: str) -> None:
    value = schema.parse_yaml(number.encode()).value
    assert isinstance(value, schema.Literal) and value.text == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: b", ""),
        ("a: b\na: c", 'yaml: unmarshal errors:\n  line 2: key "a" already set in map'),
        (
            "a: {b: 1, b: 2}\n1: 1\n1: 2",
            'yaml: unmarshal errors:\n  line 1: key "b" already set in map\n  line 3: key 1 already set in map',
        ),
    ],
)  # fmt: skip
def test_keys_that_stand_twice_in_yaml_are_told_all_in_one(text: str, words: str) -> None:
    assert schema.parse_yaml(text.encode()).repeated == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "yaml: line 1: did not find expected node content"),
        ("a: @b", "yaml: found character that cannot start any token"),
        ("a:\n\tb: 1", "yaml: line 2: found character that cannot start any token"),
        ("a: b: c", "yaml: mapping values are not allowed in this context"),
        ('a: "x', "yaml: found unexpected end of stream"),
        ("a: *x", "yaml: unknown anchor 'x' referenced"),
        ("a: &x [*x]", "yaml: anchor 'x' value contains itself"),
        ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: \x01", "yaml: control characters are not allowed"),
        ("a: !!bool x", "yaml: cannot decode !!str `x` as a !!bool"),
        ("a: !!binary x", "yaml: !!binary value contains invalid base64 data"),
        ("[a]: b", 'yaml: invalid map key: []interface {}{"a"}'),
        ("~: x", 'unsupported map key of type: %!s(<nil>), key: <nil>, value: "x"'),
        ("a: -.inf", "json: unsupported value: -Inf"),
    ],
)  # fmt: skip
def test_yaml_is_refused_in_the_words_of_gos_loader(text: str, words: str) -> None:
    with pytest.raises(schema.MalformedBodyError) as refused:
        schema.parse_yaml(text.encode())
    assert str(refused.value) == words


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"a: [", "yaml: line 1: did not find expected node content"),
        (
            b"a: &a [x]\n" + b"".join(b"%c: &%c [%s]\n" % (c + 1, c + 1, b",".join([b"*%c" % c] * 9)) for c in range(97, 106)),
            "yaml: document contains excessive aliasing",
        ),
        (b"a: " + b"x" * 300_000, "yaml: the body is larger than 262144 bytes"),
        (b"a: .nan", "json: unsupported value: NaN"),
        (b"? [a]\n: b\n", None),
        (b"[" * 5000, None),
    ],
)
def test_yaml_that_json_cannot_say_or_that_is_a_bomb_is_refused(body: bytes, message: str | None) -> None:
    began = time.process_time()
    with pytest.raises(schema.MalformedBodyError) as refused:
        schema.parse_yaml(body)
    assert message is None or str(refused.value) == message
    assert time.process_time() - began < 2.0


# ---------------------------------------------------------------- decoding


def test_a_document_comes_out_as_go_would_write_it() -> None:
    container = {
        "name": "c",
        "image": "x",
        "command": [],
        "stdin": False,
        "tty": True,
        "ports": None,
        "env": [{"name": "A", "value": ""}],
    }
    document = a_pod(
        containers=[container | {"resources": {"requests": {"cpu": 0.5, "memory": "1024Mi"}, "limits": {}}}],
        hostNetwork=False,
        nodeName="",
        terminationGracePeriodSeconds=0,
        automountServiceAccountToken=False,
    )
    document["metadata"] |= {"creationTimestamp": None, "labels": {}, "annotations": {"a": None}}
    assert decoded(POD, document) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "annotations": {"a": ""}},
        "spec": {
            "containers": [
                {
                    "name": "c",
                    "image": "x",
                    "tty": True,
                    "env": [{"name": "A"}],
                    "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
                }
            ],
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        },
        "status": {},
    }


def test_decoding_leaves_what_it_is_given_alone() -> None:
    document = a_pod(containers=[{"name": "c", "resources": {"requests": {"cpu": "1000m"}}}])
    before = json.dumps(document)
    decoded(POD, document)
    assert json.dumps(document) == before


def test_decoding_twice_changes_nothing() -> None:
    status = {
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-29T18:41:25+01:00"}],
        "containerStatuses": [{"name": "c", "state": {"running": {}}, "resources": {"requests": {"cpu": "1e3"}}}],
    }
    once = decoded(
        POD, {**a_pod(containers=[{"name": "c"}], volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1.5Gi"}}]), "status": status}
    )
    assert decoded(POD, once) == once
    assert once["status"]["conditions"][0] == {
        "type": "Ready",
        "status": "True",
        "lastTransitionTime": "2026-11-29T17:41:25Z",
        "lastProbeTime": None,
    }
    assert once["status"]["containerStatuses"][0] == {
        "name": "c",
        "state": {"running": {"startedAt": None}},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": "",
        "imageID": "",
        "resources": {"requests": {"cpu": "1e3"}},
    }


def test_an_ordinary_manifest_has_no_unknown_field() -> None:
    assert decoded(POD, schema.parse_yaml(ORDINARY.read_bytes()).value)["spec"]["resources"] == {"requests": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("group", "name", "document"),
    [
        ("", "Node", {"spec": {"podPreemptionPolicy": {"disableResizePreemption": ["me"]}}, "status": {"declaredFeatures": ["A"]}}),
        (
            "",
            "Pod",
            {"status": {"observedGeneration": 1, "allocatedResources": {"cpu": "1"}, "resources": {"limits": {"cpu": "1"}}}},
        ),
        ("", "Pod", {"status": {"conditions": [{"type": "A", "status": "True", "observedGeneration": 2}]}}),
        (
            "policy",
            "PodDisruptionBudget",
            {"spec": {"minAvailable": "50%", "maxUnavailable": 1, "unhealthyPodEvictionPolicy": "A"}},
        ),
        ("apps", "Deployment", {"spec": {"strategy": {"rollingUpdate": {"maxSurge": "25%"}}, "template": {"spec": {}}}}),
        ("policy", "Eviction", {"deleteOptions": {"gracePeriodSeconds": 1, "preconditions": {"uid": "u"}}}),
        ("", "DeleteOptions", {"propagationPolicy": "Background", "dryRun": ["All"]}),
        ("autoscaling", "Scale", {"spec": {"replicas": 3}}),
        ("coordination.k8s.io", "Lease", {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z", "holderIdentity": "x"}}),
    ],
)
def test_the_fields_that_this_project_is_about_are_known(group: str, name: str, document: Any) -> None:
    decoded(kind(name, group), document)


def test_preview_fields_exist_only_where_they_are_asked_for() -> None:
    document = {
        "spec": {"scaleDownGracePeriodSeconds": 5},
        "status": {"containerStatuses": [{"name": "c", "resizeStatus": "Deferred"}]},
    }
    assert schema.decode(POD, document).unknown == ["spec.scaleDownGracePeriodSeconds", "status.containerStatuses[0].resizeStatus"]
    assert schema.decode(kind("Pod", previews=True), document).unknown == []


def test_unknown_fields_are_told_in_the_documents_order_and_dropped() -> None:
    document = a_pod(containers=[{"name": "c", "resource": {}, "resources": {"request": {}}}], nope=1)
    found = schema.decode(POD, {**document, "extra": 2})
    assert found.unknown == ["spec.containers[0].resource", "spec.containers[0].resources.request", "spec.nope", "extra"]
    assert found.document["spec"] == {"containers": [{"name": "c", "resources": {}}]}
    assert schema.decode(POD, document, restored=True).unknown == sorted(found.unknown[:3])
    assert schema.decode(POD, {"nope": 1}, "items[3]").unknown == ["items[3].nope"]


def test_fields_are_told_apart_by_case() -> None:
    assert schema.decode(POD, {"Spec": {}}).unknown == ["Spec"]


JSON_WORDS: list[tuple[str, str, Any, str]] = [
    ("", "Pod", {"spec": {"priority": "x"}}, "cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32"),
    (
        "",
        "Pod",
        {"spec": {"containers": {}}},
        "cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
    ),
    (
        *("", "Pod", {"spec": {"containers": [{"ports": [{"containerPort": "x"}]}]}}),
        "cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
    ),
    (
        *("", "Pod", {"spec": {"containers": [{"command": "x"}]}}),
        "cannot unmarshal string into Go struct field Container.spec.containers.command of type []string",
    ),
    (
        *("", "Pod", {"metadata": {"annotations": {"a": 1}}}),
        "cannot unmarshal number into Go struct field ObjectMeta.metadata.annotations of type string",
    ),
    (
        "",
        "Pod",
        {"spec": {"restartPolicy": 1}},
        "cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
    ),
    (
        "",
        "Pod",
        {"spec": {"securityContext": []}},
        "cannot unmarshal array into Go struct field PodSpec.spec.securityContext of type v1.PodSecurityContext",
    ),
    ("", "ConfigMap", {"data": []}, "cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"),
    ("", "ConfigMap", {"data": {"a": True}}, "cannot unmarshal bool into Go struct field ConfigMap.data of type string"),
    (
        *("scheduling.k8s.io", "PriorityClass", {"value": 2147483648}),
        "cannot unmarshal number 2147483648 into Go struct field PriorityClass.value of type int32",
    ),
    (
        "",
        "DeleteOptions",
        {"gracePeriodSeconds": "x"},
        "cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
    ),
    ("policy", "PodDisruptionBudget", {"spec": {"minAvailable": True}}, "cannot unmarshal bool into Go value of type int32"),
    ("", "Pod", [], "cannot unmarshal array into Go value of type v1.Pod"),
]


@pytest.mark.parametrize(("group", "name", "document", "words"), JSON_WORDS)
def test_a_wrong_type_is_told_in_gos_words(group: str, name: str, document: Any, words: str) -> None:
    assert schema.decode(kind(name, group), document) == (None, [], f"json: {words}")


def test_a_number_is_quoted_as_it_was_written() -> None:
    parsed = schema.parse_json(b'{"value":1.50}').value
    found = schema.decode(kind("PriorityClass", "scheduling.k8s.io"), parsed).error
    assert found == "json: cannot unmarshal number 1.50 into Go struct field PriorityClass.value of type int32"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"priority": "x"}, "unrecognized type: int32"),
        ({"activeDeadlineSeconds": "x"}, "unrecognized type: int64"),
        ({"containers": {}}, "cannot restore slice from map"),
        ({"securityContext": []}, "cannot restore struct from: slice"),
        ({"nodeSelector": "x"}, "cannot restore map from string"),
        ({"priority": 1.5}, "cannot convert float64 to int32"),
    ],
)
def test_a_strategic_patch_is_refused_in_the_words_of_the_converter(spec: dict[str, Any], words: str) -> None:
    assert schema.decode(POD, {"spec": spec}, restored=True).error == words


@pytest.mark.parametrize("amount", ["abc", "1e3m", "", "1.5.2", True, {}, [], "0x10", "1 Gi"])
def test_what_is_no_quantity_is_refused_before_every_other_fault(amount: Any) -> None:
    document = a_pod(priority="x", containers=[{"resources": {"requests": {"cpu": amount}}}])
    assert schema.decode(POD, document).error in (REGEX, "unable to parse quantity's suffix")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x", 'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
        ("2026-01-01", 'parsing time "2026-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'),
        ("2026-13-01T00:00:00Z", 'parsing time "2026-13-01T00:00:00Z": month out of range'),
        ("2025-02-29T00:00:00Z", 'parsing time "2025-02-29T00:00:00Z": day out of range'),
        ("2026-01-01T25:00:00Z", 'parsing time "2026-01-01T25:00:00Z": hour out of range'),
        ("2026-01-01T00:00:00Zx", 'parsing time "2026-01-01T00:00:00Zx": extra text: "x"'),
        (5, "json: cannot unmarshal number into Go value of type string"),
    ],
)
def test_a_time_that_is_none_is_told_as_go_does(text: Any, words: str) -> None:
    assert schema.decode(POD, {"metadata": {"creationTimestamp": text}}).error == words


def test_a_lease_wants_its_microseconds() -> None:
    lease = kind("Lease", "coordination.k8s.io")
    text = "2026-01-01T00:00:00Z"
    words = f'parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"'
    assert schema.decode(lease, {"spec": {"renewTime": text}}).error == words
    assert decoded(lease, {"spec": {"renewTime": "2026-01-01T01:00:00.123456789+01:00"}})["spec"] == {
        "renewTime": "2026-01-01T00:00:00.123456Z"
    }


def test_bytes_must_be_base64() -> None:
    assert schema.decode(kind("ConfigMap"), {"binaryData": {"a": "YQ=="}}).error is None
    assert schema.decode(kind("ConfigMap"), {"binaryData": {"a": "Y!"}}).error == "illegal base64 data at input byte 1"


@given(_json)
def test_no_value_breaks_the_decoder(value: Any) -> None:
    for restored in (False, True):
        document = {"metadata": value, "spec": {"containers": value, "volumes": [value], "nodeSelector": value}, "status": value}
        found = schema.decode(POD, document, restored=restored)
        assert (found.document is None) == (found.error is not None)


# ---------------------------------------------------------------- the tree


@pytest.mark.parametrize(
    ("path", "name", "expected"),
    [
        (("spec",), "containers", ("merge", "name")),
        (("spec",), "volumes", ("merge,retainKeys", "name")),
        (("spec", "containers"), "ports", ("merge", "containerPort")),
        (("spec", "containers"), "resources", ("replace", "")),
        (("spec",), "tolerations", ("replace", "")),
        (("metadata",), "finalizers", ("merge", "")),
        (("metadata",), "ownerReferences", ("merge", "uid")),
        (("status",), "conditions", ("merge", "type")),
        (("spec",), "nothing", ("replace", "")),
    ],
)
def test_patches_merge_by_upstreams_keys(path: tuple[str, ...], name: str, expected: tuple[str, str]) -> None:
    field = POD
    for step in path:
        field = field.fields[step]
    assert schema.merge_key(field, name) == expected


def test_lists_tell_how_apply_treats_them() -> None:
    spec = POD.fields["spec"].fields
    assert (spec["containers"].list_type, spec["containers"].list_keys) == ("map", ("name",))
    assert spec["tolerations"].list_type == "atomic"
    assert spec["topologySpreadConstraints"].list_keys == ("topologyKey", "whenUnsatisfiable")
    assert POD.fields["metadata"].fields["finalizers"].list_type == "set"


def test_every_kind_can_be_found_as_itself_and_as_a_list() -> None:
    for group, version, name in schema.served_kinds():
        assert schema.find(group, version, name) is not None
        assert schema.find(group, version, f"{name}List") is not None
    assert schema.find("", "v1", "Nothing") is None and schema.find("apps", "v1", "Pod") is None


# ---------------------------------------------------------------- protobuf


def _varint(value: int) -> bytes:
    found = b""
    value &= (1 << 64) - 1
    while value > 0x7F:
        found += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return found + bytes((value,))


def message(*parts: tuple[int, Any]) -> bytes:
    found = b""
    for number, value in parts:
        if isinstance(value, int):
            found += _varint(number << 3) + _varint(value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            found += _varint(number << 3 | 2) + _varint(len(raw)) + raw
    return found


def enveloped(api_version: str, name: str, raw: bytes) -> bytes:
    return b"k8s\0" + message((1, message((1, api_version), (2, name))), (2, raw), (3, ""), (4, ""))


def test_a_protobuf_body_says_what_its_json_would() -> None:
    probe = message((1, message((2, message((1, "/x"), (2, message((1, 0), (2, 8080), (3, ""))))))), (2, 5))
    limits = message((1, message((1, "cpu"), (2, message((1, "500m"))))))
    container = message((1, "c"), (3, "run"), (3, "it"), (8, limits), (10, probe))
    volume = message((1, "v"), (2, message((2, message((1, "Memory"))))))
    spec = message((1, volume), (2, container), (4, -1), (3, "Always"))
    meta = message((1, "a"), (8, message((1, 1_000_000_000))), (11, message((1, "k"), (2, "v"))), (99, "newer"))
    found = schema.parse_protobuf(enveloped("v1", "Pod", message((1, meta), (2, spec))))
    assert found == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "creationTimestamp": "2001-09-09T01:46:40Z", "labels": {"k": "v"}},
        "spec": {
            "volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}],
            "containers": [
                {
                    "name": "c",
                    "command": ["run", "it"],
                    "resources": {"limits": {"cpu": "500m"}},
                    "livenessProbe": {"httpGet": {"path": "/x", "port": 8080}, "initialDelaySeconds": 5},
                }
            ],
            "terminationGracePeriodSeconds": -1,
            "restartPolicy": "Always",
        },
    }


def test_bytes_and_lists_in_maps_come_out_of_protobuf_as_in_json() -> None:
    entry = message((1, "k"), (2, b"\x00\xff"))
    found = schema.parse_protobuf(enveloped("v1", "ConfigMap", message((3, entry))))
    assert found["binaryData"] == {"k": base64.b64encode(b"\x00\xff").decode()}
    extra = message((1, "scopes"), (2, message((1, "a"), (1, "b"))))
    review = message((2, message((3, "bob"), (5, extra))))
    found = schema.parse_protobuf(enveloped("authorization.k8s.io/v1", "SubjectAccessReview", review))
    assert found["spec"] == {"user": "bob", "extra": {"scopes": ["a", "b"]}}


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        enveloped("v1", "Nothing", b""),
        enveloped("v1", "Pod", b"\x0a\xff"),
        enveloped("v1", "Pod", b"\x0b"),
        enveloped("v1", "Pod", b"\xff" * 12),
        enveloped("v1", "Pod", message((1, 5))),
        enveloped("v1", "Pod", message((1, message((1, b"\xff"))))),
        enveloped("v1", "Pod", struct.pack("<B", 9) + b"12"),
    ],
)
def test_malformed_protobuf_is_refused(body: bytes) -> None:
    with pytest.raises(schema.MalformedBodyError):
        schema.parse_protobuf(body)
