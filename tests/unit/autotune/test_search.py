"""The search on synthetic spaces: how soon it finds what is good, what it never does, and that its log repeats it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from compiler.autotune.search import Options, Proposal, Search, replay
from compiler.autotune.search.batch import pick, spread_out
from compiler.autotune.search.log import warm_start_data, warm_start_of
from compiler.autotune.search.model import WarmStart
from compiler.autotune.search.supply import Supply, draw, mutate
from compiler.autotune.search.trials import Trials
from compiler.database.outcome import FAILURES, MEASURED, PASSING, Outcome, combine
from compiler.space.candidates import (
    Candidate,
    candidate_count,
    defaults_of,
    distance,
    filter_all,
    filter_candidates,
    is_in_space,
    neighbours,
)
from compiler.support.errors import InputError
from tests.sample import some
from tests.synthetic_spaces import NAMES, Bench, Reluctant, Table, Tiled

SPACE = Tiled()
TRUTH = SPACE.everything()
BEST = min(TRUTH.values())
SMALL = Options(pool=512, mutants=128)
"""Smaller rounds, for tests that do not ask how good the search is."""
SEEDS = some(range(5), 2)


def measured(*seconds: float) -> Outcome:
    return Outcome(MEASURED, seconds, (1.0,) * len(seconds))


def drive(search: Search, bench: Bench, trials: int, batch: int = 8) -> list[Proposal]:
    """Propose and measure until so many candidates were tried, or nothing is left; nothing comes twice."""
    made: list[Proposal] = []
    while len(search) < trials and not search.done:
        for proposal in search.propose(min(batch, trials - len(search))):
            assert proposal.candidate not in search._trials
            made.append(proposal)
            search.update(proposal.candidate, bench(proposal.candidate))
    return made


def first_good(candidates: Iterable[Candidate], share: float = 0.95) -> int:
    """How many trials it takes to one whose true speed is that share of the best's; 1000 if never."""
    good = (number for number, c in enumerate(candidates, 1) if BEST / TRUTH[c] >= share)
    return next(good, 1000)


# (a) how soon


def test_it_finds_what_is_good_in_half_the_trials_of_random_search() -> None:
    actual, by_chance = [], []
    everything = list(TRUTH)
    for seed in SEEDS:
        made = drive(Search(SPACE, seed), Bench(SPACE.cost, 0.03, seed), 64)
        actual.append(first_good(p.candidate for p in made))
        order = np.random.default_rng(seed).permutation(len(everything))
        by_chance.append(first_good(everything[i] for i in order))
    assert median(actual) <= 64
    assert median(actual) <= median(by_chance) / 2, (actual, by_chance)
    assert sum(f < 1000 for f in actual) >= len(SEEDS) - 1


def test_its_predictions_rank_before_they_are_measured() -> None:
    search = Search(SPACE, 1)
    drive(search, Bench(SPACE.cost, 0.03, 1), 64)
    assert search.quality.pairs.accuracy is not None
    assert search.quality.pairs.accuracy > 0.7
    assert len(search.quality) >= 64 - search.options.start
    assert search.quality.line().startswith("ranking: ")


def test_earlier_tasks_find_it_sooner() -> None:
    """Another size of the same program: half of the start is what it ranks best."""
    rng = np.random.default_rng(0)
    candidates = [list(TRUTH)[i] for i in rng.choice(len(TRUTH), 150, replace=False)]
    pool = filter_candidates(SPACE, candidates).feasible
    past = WarmStart(pool.values, np.array([1e9 * TRUTH[c] for c in pool.candidates]))
    told = [
        first_good(p.candidate for p in drive(Search(SPACE, s, None, [past]), Bench(SPACE.cost), 32)) for s in SEEDS
    ]
    alone = [first_good(p.candidate for p in drive(Search(SPACE, s), Bench(SPACE.cost), 32)) for s in SEEDS]
    assert median(told) < median(alone) / 2, (told, alone)
    misled = WarmStart(pool.values, 1 / past.costs)
    search = Search(SPACE, 0, None, [misled, past])
    drive(search, Bench(SPACE.cost), 24)
    assert search.prior_tasks == 1


# (b) failures, infeasible candidates


def test_what_cannot_be_built_is_never_proposed_and_what_failed_not_again() -> None:
    def fails(candidate: Candidate) -> str | None:
        """The fastest fail: small tiles of kc in the sketches that would be best."""
        sketch, positions = candidate
        return "wrong" if sketch < 2 and positions[5] == 1 else "timeout" if positions[0] < 2 else None

    search = Search(SPACE, 3, SMALL)
    made = [p.candidate for p in drive(search, Bench(SPACE.cost, 0.02, 3, fails), 96)]
    assert len(set(made)) == len(made) == 96
    assert filter_candidates(SPACE, made).refused == {}
    assert set(search.infeasible) == {"registers", "cache"}
    failed = [fails(c) is not None for c in made]
    share = np.mean([fails(c) is not None for c in TRUTH])
    assert 0.3 < share < 0.5
    assert np.mean(failed[48:]) < share / 3, "it learns where candidates fail"
    assert search.best is not None
    assert fails(search.best) is None
    reachable = min(cost for c, cost in TRUTH.items() if fails(c) is None)
    assert reachable / TRUTH[search.best] > 0.9


def test_nothing_is_ruled_out_by_the_failure_of_others() -> None:
    """All that was seen first of a sketch fails; the only good candidate is in it."""
    good = (1, (3, 3))
    space = Table(sizes=((8, 8), (8, 8)))
    bench = Bench(lambda c: 0.1 if c == good else 1.0, fails=lambda c: "crash" if c[0] == 1 and c != good else None)
    search = Search(space, 0)
    made = drive(search, bench, 128)
    assert search.done
    assert len(made) == 128
    assert search.best == good


def test_a_space_where_all_fails_ends() -> None:
    search = Search(Table(sizes=((5, 4),)), 0)
    assert len(drive(search, Bench(lambda c: 1.0, fails=lambda c: "refused"), 100)) == 20
    assert search.done
    assert search.best is None
    assert search.best_outcome is None
    assert search.leaders(3) == []
    large = Search(SPACE, 0, SMALL)
    made = drive(large, Bench(lambda c: 1.0, fails=lambda c: "build"), 40)
    assert len(made) == 40
    assert {p.why for p in made} == {"start", "random"}


def test_infeasible_ones_are_counted_by_reason() -> None:
    space = Table(((4, 4), (3,)), infeasible=lambda c: 0 if sum(c[1]) % 3 == 0 else 1 + c[0])
    search = Search(space, 0)
    everything = [(0, (i, j)) for i in range(4) for j in range(4)] + [(1, (i,)) for i in range(3)]
    assert search.infeasible == Counter(NAMES[space.infeasible(c)] for c in everything if space.infeasible(c))
    made = drive(search, Bench(lambda c: 1.0), 100)
    assert {p.candidate for p in made} == {c for c in everything if not space.infeasible(c)}


def test_a_large_space_without_feasible_candidates_ends() -> None:
    search = Search(Table(((64, 64, 64),), infeasible=lambda c: 1), 0, SMALL)
    assert search.propose(8) == []
    assert search.done


def test_few_feasible_candidates_are_found() -> None:
    """One in 512: a round draws until it has some."""
    space = Table(((32, 32, 32),), infeasible=lambda c: int(any(p % 8 for p in c[1])))
    pool = Supply(space, SMALL, np.random.default_rng(0)).drawn(512, {(0, (0, 0, 0))})
    assert 4 <= len(pool) <= 20
    assert len(set(pool.candidates)) == len(pool)
    assert (0, (0, 0, 0)) not in pool.candidates
    assert len(drive(Search(space, 0, SMALL), Bench(lambda c: 1.0 + sum(c[1])), 32)) == 32


def test_what_a_space_tells_later_is_asked_for_again() -> None:
    """No candidate is lost, none counted as infeasible that only was not looked at, and no round waits for all."""
    table = Table(((12, 3),), infeasible=lambda c: int(sum(c[1]) % 3 == 0))
    search = Search(Reluctant(table), 0, replace(SMALL, start=2))
    assert search.infeasible.keys() == {NAMES[1]} and not search.done
    made = drive(search, Bench(lambda c: 1.0 + c[1][0]), 100, batch=3)
    assert len(made) == 24 and search.infeasible == Counter({NAMES[1]: 12}) and search.done
    assert replay(Reluctant(table), search.log()).log() == search.log()


@pytest.mark.parametrize("pool", [SMALL.pool, 8])
def test_a_space_that_tells_of_few_alone_is_asked_for_few(pool: int) -> None:
    """Enumerated or not, nothing that it puts off is given up."""
    space = Reluctant(Table(((12, 3),)), patience=4)
    search = Search(space, 0, replace(SMALL, start=2, pool=pool))
    made = drive(search, Bench(lambda c: 1.0 + c[1][0]), 100, batch=3)
    assert len(made) >= 30


def test_a_space_that_never_tells_ends() -> None:
    never = Reluctant(Table(((12, 3),)), mute=True)
    search = Search(never, 0, SMALL)
    assert search.propose(4) == [] and search.done and not search.infeasible
    large = Search(replace(never, table=Table(((64, 64, 64),))), 0, SMALL)
    assert large.propose(4) == [] and large.done
    assert filter_all(never, [(0, (1, 2))]).later == ((0, (1, 2)),)


def test_a_large_space_is_asked_until_it_tells_of_one() -> None:
    """All but one value of the first choice are infeasible, and it tells of one at a time."""
    space = Reluctant(Table(((64, 64, 64),), infeasible=lambda c: int(c[1][0] != 5)))
    assert {p.candidate[1][0] for p in Search(space, 0, SMALL).propose(4)} == {5}


def test_defaults_are_known_at_once() -> None:
    default = (0, (11, 1))
    space = Reluctant(Table(((12, 3),), defaults=(default, (0, (7, 0)))))
    assert [p.candidate for p in Search(space, 0, SMALL).propose(2)] == [default, (0, (7, 0))]


def test_the_descent_looks_at_all_neighbours() -> None:
    space = Reluctant(Table(((64, 64, 2),)))
    search = Search(space, 0, replace(SMALL, start=4))
    for candidate in ((0, (9, 9, 0)), (0, (9, 8, 0)), (0, (9, 9, 1)), (0, (9, 8, 1))):
        search.update(candidate, measured(1.0 + candidate[1][0] + candidate[1][1]))
    search.descend()
    near = {p.candidate for p in search.propose(1000) if p.why == "neighbour"}
    assert near == set(neighbours(space.sizes, (0, (9, 8, 0)))) - set(search._trials.tried())


# (c) noise


def test_the_first_best_is_measured_again() -> None:
    """A mediocre candidate was lucky once; measured again with its rivals, it falls back, and the best is the best."""
    space, lucky = Table(((40,),)), (0, (7,))
    bench = Bench(lambda c: 1.0 + abs(c[1][0] - 25) / 100, 0.004)
    search = Search(space, 0)
    for proposal in search.propose(100):
        outcome = bench(proposal.candidate)
        search.update(proposal.candidate, measured(0.5) if proposal.candidate == lucky else outcome)
    assert search.best == lucky
    rounds = 0
    while leaders := search.leaders(4):
        assert lucky in leaders or rounds
        for candidate in leaders:
            search.update(candidate, bench(candidate))
        rounds += 1
    assert search.best is not None
    assert abs(search.best[1][0] - 25) <= 1
    assert search.best_outcome is not None
    assert search.best_outcome.cost == pytest.approx(1.0, abs=0.02)
    assert len(search.best_outcome.seconds) > 3
    assert rounds < 20


def test_leaders_are_those_measured_too_seldom() -> None:
    search = Search(Table(((4,),)), 0, Options(repeats=2))
    for number in range(4):
        search.update((0, (number,)), measured(1.0 + number))
    assert search.leaders(2) == [(0, (0,)), (0, (1,))]
    search.update((0, (0,)), measured(1.0))
    assert search.leaders(2) == [(0, (1,))]
    search.update((0, (1,)), measured(0.1))  # samples 2.0 and 0.1: their median leads neither
    assert search.leaders(2) == []
    assert search.best == (0, (0,))


def test_outcomes_of_one_candidate_are_combined() -> None:
    steady, lucky = measured(3.0, 3.1, 2.9), measured(1.0)
    assert combine([lucky, steady]).cost == pytest.approx(2.95)
    assert combine([steady]).cost == 3.0
    two_outcomes = combine([replace(steady, rates=(2.0,) * 3), steady])
    assert len(two_outcomes.seconds) == len(two_outcomes.rates) == 6
    for kind in FAILURES:
        failure = Outcome(kind, reason="why")
        kept = kind in PASSING
        assert combine([steady, failure]).ok == kept
        assert combine([failure, steady]).ok == kept
        assert combine([failure]) == combine([failure, failure]) == failure


def test_trials_rank_by_what_they_are_combined_to() -> None:
    trials = Trials()
    a, b, c, d = ((0, (i,)) for i in range(4))
    for candidate, cost in ((a, 2.0), (b, 1.0), (c, 3.0), (d, 0.0)):
        trials.add(candidate, measured(cost))
    assert trials.best(9) == [b, a, c], "a cost of zero says that a clock failed"
    trials.add(b, Outcome("wrong"))
    assert trials.best(9) == [a, c]
    trials.add(c, measured(0.1))
    trials.add(c, measured(0.1))
    assert trials.best(9) == [c, a]
    trials.add(b, measured(0.1))
    assert trials.best(9) == [c, a], "what was wrong once stays wrong"
    assert trials.tried() == [a, b, c, d]
    assert trials.times(b) == 3
    assert d in trials
    assert len(trials) == 4
    assert trials.changed == 8


def test_the_incumbent_is_never_lost() -> None:
    search = Search(SPACE, 5, SMALL)
    bench = Bench(SPACE.cost, 0.02, 5, lambda c: "crash" if sum(c[1]) % 5 == 0 else None)
    lowest, best = float("inf"), None
    while len(search) < 64:
        for proposal in search.propose(8):
            outcome = bench(proposal.candidate)
            search.update(proposal.candidate, outcome)
            if outcome.cost < lowest:
                lowest, best = outcome.cost, proposal.candidate
            assert search.best == best


# (d) tiny spaces


@pytest.mark.parametrize("sizes", [((),), ((1,),), ((3,),), ((), (), ()), ((2,), ()), ((1, 1), (3,), ()), ()])
def test_tiny_spaces_are_measured_whole(sizes: tuple[tuple[int, ...], ...]) -> None:
    search = Search(Table(sizes), 0) if sizes else Search(Table(((0,),)), 0)
    made = drive(search, Bench(lambda c: 1.0 + c[0] + sum(c[1])), 100, batch=2)
    assert len(made) == len({p.candidate for p in made}) == candidate_count(sizes)
    assert all(is_in_space(sizes, p.candidate) for p in made)
    assert search.done
    assert search.propose(4) == []
    assert (search.best is None) == (not made)
    assert replay(Table(sizes) if sizes else Table(((0,),)), search.log()).log() == search.log()


def test_nothing_is_proposed_for_nothing() -> None:
    search = Search(SPACE, 0, SMALL)
    assert search.propose(0) == []
    assert not search.done


# (e) replay


@cache
def log_of(trials: int) -> str:
    """The log of a search; made once."""
    return logged(trials).log()


def logged(trials: int = 40) -> Search:
    search = Search(SPACE, 11, replace(SMALL, trials=trials))
    bench = Bench(SPACE.cost, 0.05, 11, lambda c: "timeout" if c[1][2] == 0 else None)
    drive(search, bench, trials // 2, batch=5)
    for candidate in search.leaders(2):
        search.update(candidate, bench(candidate))
    search.propose(2)
    search.release()
    drive(search, bench, trials, batch=5)
    search.descend()
    return search


def test_a_replay_is_the_same_search_and_goes_on_alike() -> None:
    first = logged()
    again = replay(SPACE, first.log())
    assert again.log() == first.log()
    assert again.best == first.best
    assert again.best_outcome == first.best_outcome
    assert again.quality.line() == first.quality.line()
    assert again.propose(8) == first.propose(8)
    assert log_of(40) == again.log()[: len(log_of(40))], "and from scratch"


def test_a_replay_in_another_process_is_the_same_byte_for_byte() -> None:
    """Sets and dictionaries of strings have another order there."""
    log = log_of(40)
    code = (
        "import sys; from compiler.autotune.search import replay; from tests.synthetic_spaces import Tiled\n"
        "sys.stdout.write(replay(Tiled(), sys.stdin.read()).log())"
    )
    root = Path(__file__).parents[3]
    for hash_seed in some(("1", "77"), 2):
        env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
        ran = subprocess.run([sys.executable, "-c", code], input=log, text=True, capture_output=True, env=env, cwd=root)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout == log


def test_a_log_has_what_earlier_tasks_measured() -> None:
    rows = np.random.default_rng(3).integers(0, np.array(SPACE.sizes[0]), (64, len(SPACE.sizes[0])))
    past = WarmStart(SPACE.features(0, rows).values, SPACE.costs(0, rows))
    search = Search(SPACE, 5, SMALL, [past, warm_start_of(warm_start_data(past))])
    assert any(p.predicted is not None for p in search.propose(8)), "what they say is asked before the first trial"
    again = replay(SPACE, search.log())
    assert again.log() == search.log() and again.prior_tasks == 2
    assert again.propose(8) == search.propose(8)


def test_another_seed_proposes_other_candidates() -> None:
    first, second = Search(SPACE, 1, SMALL), Search(SPACE, 2, SMALL)
    assert first.propose(16) != second.propose(16)


def test_outcomes_decide_what_is_proposed() -> None:
    logs = []
    for factor in (1, -1):
        search = Search(SPACE, 1, SMALL)
        drive(search, Bench(lambda c, factor=factor: SPACE.cost(c) ** factor), 16, batch=16)  # type: ignore[misc]
        logs.append(search.propose(8))
    assert logs[0] != logs[1]


PAST = warm_start_data(WarmStart(np.ones((1, 3), np.float32), np.ones(1)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: "", "not the log of a search"),
        (lambda text: "{", "not the log of a search"),
        (lambda text: "[1, 2]", "not the log of a search"),
        (lambda text: text + '{"call": "dance"}\n', "not the log of a search"),
        (lambda text: text + '{"update": [0]}\n', "not the log of a search"),
        (lambda text: text.replace('"start": 16', '"begin": 16'), "not the log of a search"),
        (lambda text: text.replace('"start": 16', '"start": 0'), "start is 0, expected an integer from 1"),
        (lambda text: text.replace('"seed": 11', '"seed": 12'), "line 2 of the log is not what the search answers"),
        (lambda text: text.replace('"sizes": [[8', '"sizes": [[9'), "another space"),
        (lambda text: text.replace('"past": []', '"past": ["ab"]'), "not the log of a search"),
        (lambda text: text.replace('"past": []', f'"past": [{json.dumps(PAST | {"costs": [0.0]})}]'), "positive cost"),
        (lambda text: text.replace('"past": []', f'"past": [{json.dumps(PAST | {"values": "AA"})}]'), "not the log"),
        (lambda text: text + json.dumps({"update": [0, [99]], "outcome": asdict(Outcome("crash"))}), "not one"),
    ],
)
def test_a_log_that_does_not_fit_is_refused(change: object, message: str) -> None:
    assert callable(change)
    with pytest.raises(InputError, match=message):
        replay(SPACE, change(log_of(24)))


def test_a_log_with_other_outcomes_diverges_in_words() -> None:
    lines = log_of(24).splitlines()
    number = next(i for i, line in enumerate(lines) if "measured" in line)
    changed = json.loads(lines[number])
    changed["outcome"]["seconds"] = [1e-9] * 3
    lines[number] = json.dumps(changed)
    with pytest.raises(InputError, match=r"line \d+ of the log is not what the search answers now"):
        replay(SPACE, "\n".join(lines))


# The phases


def test_defaults_come_first_then_all_sketches() -> None:
    defaults = [(2, (4, 1, 2, 2, 1, 0, 1)), (0, (3, 1, 2, 2, 1, 0, 1))]
    space = replace(SPACE, defaults=[*defaults, defaults[0]])
    assert defaults_of(space) == (*defaults, defaults[0])
    made = Search(space, 0, SMALL).propose(SMALL.start)
    assert [p.candidate for p in made[:2]] == defaults
    assert [p.why for p in made] == ["default"] * 2 + ["start"] * 14
    assert all(p.predicted is None for p in made)
    per_sketch = Counter(p.candidate[0] for p in made[2:])
    assert max(per_sketch.values()) - min(per_sketch.values()) <= 1
    infeasible = replace(SPACE, defaults=[(0, (7, 3, 0, 0, 0, 0, 0))])
    assert {p.why for p in Search(infeasible, 0, SMALL).propose(16)} == {"start"}
    with pytest.raises(InputError, match="not one of the space"):
        Search(replace(SPACE, defaults=[(9, ())]), 0, SMALL)


def test_many_defaults_leave_room_for_the_unexpected() -> None:
    defaults = [c for c, _ in zip(TRUTH, range(40), strict=False)]
    made = Search(replace(SPACE, defaults=defaults), 0, SMALL).propose(48)
    assert Counter(p.why for p in made) == {"default": 40, "start": 8}


def test_a_share_stays_random_and_batches_are_not_of_one_kind() -> None:
    search = Search(SPACE, 0, replace(SMALL, random=0.25))
    drive(search, Bench(SPACE.cost), 16)
    why: Counter[str] = Counter()
    for _ in range(8):
        batch = search.propose(4)
        why.update(p.why for p in batch)
        assert all(p.predicted is not None for p in batch)
        apart = [distance(a.candidate, b.candidate) for i, a in enumerate(batch) for b in batch[:i]]
        assert all(d is None or d >= 2 for d in apart)
        for p in batch:
            search.update(p.candidate, measured(SPACE.cost(p.candidate)))
    assert why["random"] == 8
    assert why["mean"] >= 8
    assert why["improvement"] >= 8


def test_the_descent_ends_where_no_neighbour_is_better() -> None:
    search = Search(SPACE, 2, SMALL)
    bench = Bench(SPACE.cost)
    drive(search, bench, 32)
    search.descend()
    why = "neighbour"
    while why == "neighbour":
        (*_, last) = drive(search, bench, len(search) + 8)
        why = last.why  # when there are none left, rounds go on
    assert len(search) > 40
    assert search.best is not None
    around = filter_candidates(SPACE, neighbours(SPACE.sizes, search.best)).feasible.candidates
    assert min(SPACE.cost(c) for c in around) >= SPACE.cost(search.best)


def test_the_end_of_a_budget_is_a_descent() -> None:
    search = Search(SPACE, 2, replace(SMALL, trials=40, descent=0.25))
    made = drive(search, Bench(SPACE.cost), 40, batch=5)
    assert {p.why for p in made[30:]} == {"neighbour"}
    assert "neighbour" not in {p.why for p in made[:30]}


def test_what_is_pending_is_not_proposed_again_unless_released() -> None:
    search = Search(Table(((6,),)), 0)
    first = [p.candidate for p in search.propose(4)]
    second = [p.candidate for p in search.propose(4)]
    assert len(second) == 2
    assert not set(first) & set(second)
    assert search.pending == (*first, *second)
    assert search.done, "nothing left to propose"
    search.update(first[0], measured(1.0))
    search.release()
    assert search.pending == ()
    assert not search.done
    assert sorted(p.candidate for p in search.propose(9)) == sorted({*first[1:], *second})


def test_outcomes_of_what_was_not_proposed_count() -> None:
    """Records of an earlier run of the same task, handed in before the first proposal."""
    search = Search(SPACE, 0, SMALL)
    for candidate in list(TRUTH)[:: len(TRUTH) // 20]:
        search.update(candidate, measured(SPACE.cost(candidate)))
    made = search.propose(24)
    assert all(p.predicted is not None for p in made)
    assert len(search.quality) == 0, "nothing was predicted of them before"
    with pytest.raises(InputError, match="not one of the space"):
        search.update((0, (1, 2)), measured(1.0))


@pytest.mark.parametrize(
    "wrong", [{"random": 1.5}, {"greedy": -0.1}, {"start": 0}, {"mutants": -1}, {"repeats": 0}, {"trials": -3}]
)
def test_options_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=f"the search option {name} is"):
        Options(**wrong)  # type: ignore[arg-type]


# Pieces


def test_drawing_covers_sketches_evenly() -> None:
    rng = np.random.default_rng(0)
    sizes = ((), (3,), (9, 9, 9), (50, 50))
    actual = draw(sizes, 100, rng)
    assert len(set(actual)) == len(actual)
    assert all(is_in_space(sizes, c) for c in actual)
    per_sketch = Counter(c[0] for c in actual)
    assert per_sketch[0] == 1
    assert per_sketch[1] == 3
    assert min(per_sketch[2], per_sketch[3]) > 40
    assert sorted(draw(sizes[:2], 100, rng)) == [(0, ()), (1, (0,)), (1, (1,)), (1, (2,))]


def test_mutants_are_near_their_parents_and_in_range() -> None:
    rng = np.random.default_rng(0)
    sizes = ((5, 1, 7, 4, 9), (), (2, 2))
    parents: list[Candidate] = [(0, (0, 0, 3, 3, 8)), (1, ()), (2, (1, 1)), (0, (4, 0, 0, 1, 2))]
    actual = mutate(sizes, parents, 500, rng)
    assert all(is_in_space(sizes, c) for c in actual)
    assert len(set(actual)) == len(actual)
    alone = mutate(sizes, parents[:1], 300, rng)
    changes = Counter(distance(c, parents[0]) for c in alone)
    assert changes[1] > len(alone) / 4
    assert set(neighbours(sizes, parents[0])) <= {*mutate(sizes, parents[:1], 20_000, rng)}
    assert mutate(sizes, [], 10, rng) == []


def test_mutants_cross_choices_of_two_parents() -> None:
    parents = [(0, (0,) * 6), (0, (40,) * 6)]
    actual = mutate(((80,) * 6,), parents, 500, np.random.default_rng(0))
    crossed = [c for c in actual if c[1].count(0) >= 2 and c[1].count(40) >= 2]
    assert len(crossed) > len(actual) / 30


def test_neighbours_by_hand() -> None:
    assert list(neighbours(((2, 3),), (0, (1, 0)))) == [(0, (0, 0)), (0, (1, 1)), (0, (1, 2))]
    assert list(neighbours(((),), (0, ()))) == []


def test_a_spread_takes_turns_and_goes_far() -> None:
    rows: list[Candidate] = [(0, (0, 0)), (0, (0, 1)), (0, (1, 1)), (1, (5,))]
    assert spread_out(rows, 3) == [(0, (0, 0)), (1, (5,)), (0, (1, 1))]
    assert len(spread_out(rows, 9)) == 4


def test_a_batch_fills_up_with_what_is_alike() -> None:
    pool = filter_candidates(Table(((4, 4),)), [(0, (0, 0)), (0, (0, 1)), (0, (0, 2)), (0, (1, 1))]).feasible
    assert pick(pool, [0, 1, 2, 3], 2) == [0, 3]
    assert pick(pool, [0, 1, 2, 3], 3) == [0, 3, 1]
    assert pick(pool, [0, 1, 2, 3], 2, beside=[(0, (0, 1))]) == [0, 2]
    assert pick(pool, [0, 1], 5) == [0, 1]
    assert pick(pool, [0, 1], 0) == []
