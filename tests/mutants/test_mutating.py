"""How mutants are made and tried: what is not there is an error, what nobody minds survives, what is changed is what runs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from line_mutations import Region, mutations
from mutating import BODY, Change, LostTarget, scope_of
from trials import ROOT

CODE = '''
class Thing:
    def double(self, n):
        """Twice."""
        if n > 0:
            self.told(n)
            return n + n
        return 0

def double(n):
    return n * 2
'''


def changed(target: str, was: str, now: str) -> str:
    return ast.unparse(Change(f"m:{target}", was, now).applied(ast.parse(CODE)))


def test_a_change_is_found_by_its_shape_in_its_scope_alone() -> None:
    assert "return n - n" in changed("Thing.double", "(n\n +   n)", "n - n")
    assert "return 7" in changed("double", "return n * 2", "return 7")
    assert "if n > 0:\n            pass\n            return n + n" in changed("Thing.double", "self.told(n)", "")
    assert "def double(n):\n    pass" in changed("double", BODY, "pass")


@pytest.mark.parametrize(
    ("target", "was"),
    [
        ("Thing.double", "n - n"),
        ("Thing.double", "n"),
        ("Thing.triple", "n + n"),
        ("Nothing", "n + n"),
        ("double", "return n * 2\nreturn 3"),
    ],
)
def test_what_is_not_there_exactly_once_is_an_error(target: str, was: str) -> None:
    with pytest.raises(LostTarget):
        changed(target, was, "0")


def test_single_line_mutations_turn_each_operator() -> None:
    region = Region("a rule", ("elbowroom.kubelet.admission:Lack.amount",), ())
    assert [(each.was, each.now) for each in mutations(region)] == [
        ("self.requested - (self.capacity - self.used)", "self.requested + (self.capacity - self.used)"),
        ("self.capacity - self.used", "self.capacity + self.used"),
    ]
    tree = ast.parse((ROOT / "services/kubelet/elbowroom/kubelet/admission.py").read_text())
    scope = scope_of(mutations(region)[0].rewrite()(tree), region.targets[0])
    assert "self.requested + (self.capacity - self.used)" in ast.unparse(scope)


TRIALS = """
from mutating import Change, Mutant
import run_mutants

def tried(target, was, now, test="api/test_quantity.py::test_equal_amounts_are_equal_however_written"):
    mutant = Mutant("m", "BR-000", "something", (Change(target, was, now),), (test,))
    (verdict,) = list(run_mutants.try_all([mutant], 1))
    print(verdict.outcome, verdict.why)

tried("elbowroom.api.quantity:Quantity.__eq__", "self.nanos == other.nanos", "self.text == other.text")
tried("elbowroom.api.quantity:_capped", "...", "return 0")
tried("elbowroom.api.quantity:_capped", "no_such_thing", "0")
tried("elbowroom.api.quantity:Quantity.__eq__", "self.nanos == other.nanos", "1 / 0", "api/test_quantity.py::test_no_such_test")
tried("elbowroom.apiserver.store:Store.put", "None", "1", "api/test_quantity.py::test_equal_amounts_are_equal_however_written")
"""


def test_a_trial_tells_caught_from_survived_and_both_from_error() -> None:
    ended = subprocess.run([sys.executable, "-c", TRIALS], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=100)
    told = ended.stdout.splitlines()
    assert [line.split()[0] for line in told] == ["caught", "survived", "error", "error", "error"], ended.stderr + ended.stdout
    assert "has 0 times, not once" in told[2] and "without the mutant" in told[3]
