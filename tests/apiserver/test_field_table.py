"""The script that makes the table of fields from Go types."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

TOOL = Path(__file__).parent.parent.parent / "tools/field_table.py"

GO = """
package v1

// A thing.
type Thing struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Spec ThingSpec `json:"spec" protobuf:"bytes,2,opt,name=spec"`
}

type Mode string

type ThingSpec struct {
	// +optional
	Replicas *int32 `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`
	Mode Mode `json:"mode,omitempty" protobuf:"bytes,2,opt,name=mode,casttype=Mode"`
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=name
	Parts []Part `json:"parts,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,3,rep,name=parts"`
	Selector *Part `json:"selector" protobuf:"bytes,4,opt,name=selector"`
	// +optional
	Size resource.Quantity `json:"size,omitempty" protobuf:"bytes,5,opt,name=size"`
	hidden int
	Secret string `json:"-"`
}

// +structType=atomic
type Part struct {
	Common `json:",inline" protobuf:"bytes,1,opt,name=common"`
	Labels map[string]string `json:"labels,omitempty" protobuf:"bytes,2,rep,name=labels"`
}

type Common struct {
	Name string `json:"name" protobuf:"bytes,7,opt,name=name"`
}
"""
META = """
package v1

type TypeMeta struct {
	Kind string `json:"kind,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
}

type ObjectMeta struct {
	// +optional
	Name string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"`
}
"""
TABLE = '''"""A table."""

STRINGS = """
Mode
"""

KINDS = """
things/v1: Thing
"""

TYPES = """
Thing
ThingSpec
 2 mode Mode-
 0 later string- preview
"""
'''


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("field_table", TOOL)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    for folder, text in (("things/v1", GO), ("apimachinery/pkg/apis/meta/v1", META)):
        (tmp_path / "go" / folder).mkdir(parents=True)
        (tmp_path / "go" / folder / "types.go").write_text(text)
    (tmp_path / "table.py").write_text(TABLE)
    return tmp_path


def test_go_types_become_lines_and_what_was_added_by_hand_stays(tool: ModuleType, sources: Path) -> None:
    assert tool.main([str(sources / "go"), "--table", str(sources / "table.py")]) == 0
    names: dict[str, str] = {}
    exec((sources / "table.py").read_text(), names)
    assert names["STRINGS"].split() == ["Mode"]
    assert names["TYPES"].strip("\n").split("\n") == [
        "ObjectMeta",
        " 1 name string-",
        "Part atomic",
        " 1.7 name string+!",
        " 2 labels {}string-",
        "Thing",
        " 0 kind string-",
        " 0 apiVersion string-",
        " 1 metadata ObjectMeta+",
        " 2 spec ThingSpec+!",
        "ThingSpec",
        " 1 replicas int32",
        " 2 mode Mode-",
        " 0 later string- preview",
        " 3 parts []Part- patch=merge:name map=name",
        " 4 selector Part~!",
        " 5 size quantity+",
    ]


def test_a_check_fails_until_the_table_is_what_go_has(tool: ModuleType, sources: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(sources / "go"), "--table", str(sources / "table.py")]
    assert tool.main([*arguments, "--check"]) == 1
    assert "+ 2 spec ThingSpec+!" in capsys.readouterr().out
    assert (sources / "table.py").read_text() == TABLE, "a check writes nothing"
    tool.main(arguments)
    assert tool.main([*arguments, "--check"]) == 0


def test_the_table_that_is_served_is_in_the_order_that_the_script_writes(tool: ModuleType) -> None:
    text = tool.TABLE.read_text()
    kinds, _ = tool.stands(text)
    names: dict[str, str] = {}
    exec(text, names)
    structs = [line.partition(" ")[0] for line in names["TYPES"].strip("\n").split("\n") if line[0] != " "]
    assert structs == sorted(structs)
    assert set(kinds) <= set(structs)
