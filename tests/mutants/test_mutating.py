"""How mutants are made and tried: what is not there is an error, what nobody minds survives, what is changed is what runs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from line_mutations import Region, mutations, watched
from mutating import BODY, Change, LostTarget, scope_of, source_tree
from trials import ROOT
from verdicts import Kept, Verdict, digest

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
import trials
from line_trials import Chosen
from mutating import Change, Mutant
from run_mutants import run
from verdicts import Kept

trials.TEST_SECONDS_MIN, trials.IDLE_SECONDS, trials.LOOK_SECONDS = 0.2, 0.6, 0.2
EQUAL = "api/test_quantity.py::test_equal_amounts_are_equal_however_written"
ROUND = "api/test_quantity.py::test_accessors_round_up_and_stop_at_64_bits"
EQ = "elbowroom.api.quantity:Quantity.__eq__"

def mutant(name, target, was, now, *tests):
    return Mutant(name, "BR-000", "something", (Change(target, was, now),), tests or (EQUAL,))

mutants = [
    mutant("broken", EQ, "self.nanos == other.nanos", "self.text == other.text"),
    mutant("elsewhere", "elbowroom.api.quantity:_capped", "...", "return 0"),
    mutant("of a module that these tests do not need", "elbowroom.apiserver.store:Store.put", "...", "return None"),
    mutant("not there", "elbowroom.api.quantity:_capped", "no_such_thing", "0"),
    mutant("no test", EQ, "self.nanos == other.nanos", "1 / 0", "api/test_quantity.py::test_no_such_test"),
    mutant("a constant", "elbowroom.api.quantity:", "_NANOS = 10**_NANO_DIGITS", "_NANOS = 7"),
    mutant("of two one", EQ, "self.nanos == other.nanos", "self.text == other.text", EQUAL, ROUND),
    mutant("for ever", EQ, "...", "while True: pass"),
    mutant("in vain", EQ, "...", "__import__('threading').Event().wait()"),
    mutant("to death", EQ, "...", "__import__('os').abort()"),
    mutant("killed", EQ, "...", "__import__('os').kill(__import__('os').getpid(), 9)"),
]
verdicts, _ = run(mutants, Chosen((), ()), 2, Kept(None, ""))
print("verdicts")
for verdict in verdicts:
    print(verdict.outcome, verdict.name, verdict.why, sep=": ")
"""


def test_a_trial_tells_caught_from_survived_and_both_from_error() -> None:
    ended = subprocess.run([sys.executable, "-c", TRIALS], cwd=Path(__file__).parent, capture_output=True, text=True, timeout=300)
    lines = ended.stdout.partition("verdicts\n")[2].splitlines()
    told = {name: (outcome, why) for outcome, name, why in (line.split(": ", 2) for line in lines)}
    assert {name: outcome for name, (outcome, _) in told.items()} == {
        "broken": "caught",
        "elsewhere": "survived",
        "of a module that these tests do not need": "survived",
        "not there": "error",
        "no test": "error",
        "a constant": "error",
        "of two one": "survived",
        "for ever": "caught",
        "in vain": "caught",
        "to death": "caught",
        "killed": "error",
    }, ended.stderr + ended.stdout
    assert "has 0 times, not once" in told["not there"][1]
    assert "without the mutant" in told["no test"][1]
    assert "when it is imported" in told["a constant"][1]
    assert "test_accessors_round_up_and_stop_at_64_bits" in told["of two one"][1]


def test_a_mark_tells_which_test_comes_to_which_statement() -> None:
    target = "elbowroom.kubelet.admission:lacks"
    region = Region("a rule", (target,), ())
    tree = watched([region])["elbowroom.kubelet.admission"](source_tree(ROOT, "elbowroom.kubelet.admission"))
    code = ast.unparse(scope_of(tree, target))
    for each in mutations(region):
        before, _, _ = each.was.partition(" (place")
        (line,) = [at for at, text in enumerate(code.splitlines()) if each.mark in text.replace("\\'", "'")]
        assert before in "".join(code.splitlines()[line + 1 :]).replace("  ", ""), "the mark stands before what is changed"


def test_verdicts_are_kept_as_long_as_the_sources_are_the_same(tmp_path: Path) -> None:
    path = tmp_path / "below" / "verdicts.jsonl"
    kept = Kept(path, "one")
    kept.add(Verdict("a", "caught", by="t"))
    kept.add(Verdict("b", "error", "why"))
    again = Kept(path, "one")
    assert "a" in again and again["a"].by == "t"
    assert "b" not in again, "what went wrong is tried again"
    assert "a" not in Kept(path, "another"), "it is about other sources"
    Kept(path, "another").add(Verdict("c", "survived"))
    assert "c" in Kept(path, "another") and "c" not in Kept(path, "another", afresh=True)


def test_the_digest_of_sources_changes_with_what_they_say_and_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    found = {digest([tmp_path])}
    (tmp_path / "a.py").write_text("2")
    found.add(digest([tmp_path]))
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    found.add(digest([tmp_path]))
    (tmp_path / "b.txt").write_text("no source")
    assert len(found) == 3 and digest([tmp_path]) in found
