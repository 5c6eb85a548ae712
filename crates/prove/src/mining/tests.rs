use super::*;
use crate::random::Random;

fn tool(name: &str) -> Tool {
    Tool { package: format!("mcpkg:{name}"), action: name.to_owned() }
}

/// A day of an agent, as it goes on.
struct Day {
    calls: Vec<Seen>,
    now: u64,
    random: Random,
}

impl Day {
    fn new(seed: u64) -> Self {
        Self { calls: Vec::new(), now: 1_000, random: Random(seed) }
    }

    fn fresh(&mut self) -> Digest {
        self.random.next()
    }

    /// One call; what came out.
    fn call(&mut self, name: &str, inputs: &[(&str, Digest)], outputs: &[(&str, Digest)]) {
        self.now += 500 + self.random.next() % 4_000;
        let began = self.now;
        self.now += 20 + self.random.next() % 300;
        let owned = |all: &[(&str, Digest)]| {
            all.iter().map(|(name, digest)| ((*name).to_owned(), *digest)).collect()
        };
        let (inputs, outputs) = (owned(inputs), owned(outputs));
        self.calls.push(Seen { tool: tool(name), began, ended: self.now, inputs, outputs });
    }

    /// A true errand: tools of which each takes what the one before gave, and a setting.
    fn errand(&mut self, names: &[String], setting: Digest, noise: &mut dyn FnMut(&mut Self)) {
        let mut value = self.fresh();
        for name in names {
            let (out, other) = (self.fresh(), self.fresh());
            self.call(
                name,
                &[("value", value), ("region", setting)],
                &[("$.out", out), ("$.other", other)],
            );
            value = out;
            if self.random.below(3) == 0 {
                noise(self);
            }
        }
    }
}

fn names(suggestions: &[Suggestion]) -> BTreeSet<Vec<String>> {
    let of = |one: &Suggestion| one.steps.iter().map(|step| step.tool.action.clone()).collect();
    suggestions.iter().map(of).collect()
}

#[test]
fn what_one_call_gave_and_the_next_took_is_found_with_what_is_left_to_give() {
    let mut day = Day::new(1);
    for round in 0..4 {
        let (path, text) = (day.fresh(), day.fresh());
        day.call("read", &[("path", path)], &[("$.text", text), ("$.pages", 3)]);
        let summary = day.fresh();
        // What is given now and then is no other errand.
        let given = [("text", text), ("language", 7)];
        day.call("sum", &given[..=(round % 2)], &[("$.summary", summary)]);
    }
    let found = suggest(&day.calls, &Bounds::default());
    let [one] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((one.seen, one.calls), (4, 4));
    assert!(one.millis >= 4 * 500, "{one:?}");
    let source = Source { step: 0, path: "$.text".to_owned() };
    assert_eq!(one.steps[1].takes, BTreeMap::from([("text".to_owned(), source)]));
    assert_eq!(one.steps[1].asks, BTreeMap::from([("language".to_owned(), false)]));
    assert_eq!(one.steps[0].asks, BTreeMap::from([("path".to_owned(), true)]));
}

#[test]
fn two_results_that_meet_are_one_errand() {
    let mut day = Day::new(2);
    for _ in 0..3 {
        let [a, b, left, right, out] = std::array::from_fn(|_| day.fresh());
        day.call("left", &[("x", a)], &[("$.l", left)]);
        day.call("right", &[("x", b)], &[("$.r", right)]);
        day.call("join", &[("l", left), ("r", right)], &[("$.out", out)]);
    }
    let found = suggest(&day.calls, &Bounds::default());
    assert_eq!(
        names(&found),
        BTreeSet::from([["left", "right", "join"].map(str::to_owned).to_vec()])
    );
    assert_eq!(found[0].steps[2].takes.len(), 2);
}

#[test]
fn what_only_looks_like_a_flow_is_none() {
    let mut day = Day::new(3);
    let region = day.fresh();
    for _ in 0..20 {
        let [a, b, c, d] = std::array::from_fn(|_| day.fresh());
        // Always one after the other, and nothing flows.
        day.call("open", &[("name", a)], &[("$.handle", b)]);
        day.call("close", &[("other", c)], &[("$.done", d)]);
        // A setting that is passed around, and given back.
        let name = day.fresh();
        day.call("where", &[("name", name)], &[("$.region", region)]);
        day.call("list", &[("region", region)], &[]);
        // A tool gives back what it was told, and that is used further.
        let path = day.fresh();
        day.call("check", &[("path", path)], &[("$.path", path)]);
        day.call("view", &[("path", path)], &[]);
        // Something was said before a tool found it too.
        let id = day.fresh();
        day.call("note", &[("id", id)], &[]);
        day.call("find", &[("word", c)], &[("$.id", id)]);
        day.call("show", &[("id", id)], &[]);
    }
    // Twice is no habit.
    for _ in 0..2 {
        let [a, b] = std::array::from_fn(|_| day.fresh());
        day.call("rare", &[("a", a)], &[("$.b", b)]);
        day.call("use", &[("b", b)], &[]);
    }
    assert_eq!(suggest(&day.calls, &Bounds::default()), []);
}

#[test]
fn what_is_used_much_later_or_at_the_same_time_is_no_chain() {
    let bounds = Bounds { patience: 60_000, ..Bounds::default() };
    let mut day = Day::new(4);
    for _ in 0..5 {
        let [a, b] = std::array::from_fn(|_| day.fresh());
        day.call("first", &[("a", a)], &[("$.b", b)]);
        day.now += 61_000;
        day.call("late", &[("b", b)], &[]);
        // It began before the other had ended, so it cannot have waited for it.
        let [a, b] = std::array::from_fn(|_| day.fresh());
        day.call("slow", &[("a", a)], &[("$.b", b)]);
        day.now -= 10;
        let began = day.now - 10;
        let inputs = vec![("b".to_owned(), b)];
        day.calls.push(Seen {
            tool: tool("meanwhile"),
            began,
            ended: day.now,
            inputs,
            outputs: vec![],
        });
    }
    assert_eq!(suggest(&day.calls, &bounds), []);
}

/// Days with planted errands among decoys: how many of those that are found were planted, and of those planted found.
#[test]
fn of_planted_errands_nine_in_ten_are_found_and_nine_in_ten_of_what_is_found_were_planted() {
    let (mut right, mut found_in_all, mut planted_in_all) = (0_u32, 0, 0);
    for seed in 0..60 {
        let mut day = Day::new(seed * 7_919);
        let settings: [Digest; 4] = std::array::from_fn(|_| day.fresh());
        // Some errands share tools with others.
        let mut planted: BTreeSet<Vec<String>> = BTreeSet::new();
        while planted.len() < 6 {
            let long = 2 + day.random.below(3);
            let mut errand: Vec<String> = Vec::new();
            while errand.len() < long {
                let name = format!("tool{}", day.random.below(24));
                if !errand.contains(&name) {
                    errand.push(name);
                }
            }
            planted.insert(errand);
        }
        let mut left: Vec<Vec<String>> = planted
            .iter()
            .flat_map(|errand| std::iter::repeat_n(errand.clone(), 4 + errand.len()))
            .collect();
        let mut noise = |day: &mut Day| {
            let setting = settings[day.random.below(4)];
            let [a, b, c] = std::array::from_fn(|_| day.fresh());
            match day.random.below(6) {
                // Any tool, alone, with a setting.
                0 => {
                    let name = format!("tool{}", day.random.below(24));
                    day.call(
                        &name,
                        &[("value", a), ("region", setting)],
                        &[("$.out", b), ("$.other", c)],
                    );
                }
                // A setting comes out of a tool.
                1 => day.call("config", &[("name", a)], &[("$.region", setting), ("$.count", 2)]),
                // What was told is given back.
                2 => {
                    day.call("check", &[("path", a)], &[("$.path", a)]);
                    day.call("view", &[("path", a), ("depth", 2)], &[("$.text", b)]);
                }
                // A flow that happens once in a while, each time into something else.
                3 => {
                    let (from, to) = (day.random.below(24), day.random.below(24));
                    day.call(
                        &format!("tool{from}"),
                        &[("value", a), ("region", setting)],
                        &[("$.out", b), ("$.other", c)],
                    );
                    if day.random.below(8) == 0 {
                        let inputs = [("value", c), ("region", setting)];
                        let out = day.fresh();
                        day.call(&format!("tool{to}"), &inputs, &[("$.out", out)]);
                    }
                }
                // Small numbers meet by chance.
                4 => {
                    let [found, wanted] = std::array::from_fn(|_| day.random.next() % 10);
                    day.call("count", &[("of", a)], &[("$.count", found)]);
                    day.call("page", &[("number", wanted), ("of", b)], &[("$.rows", c)]);
                }
                _ => {}
            }
        };
        while !left.is_empty() {
            let at = day.random.below(left.len());
            let errand = left.swap_remove(at);
            let setting = settings[day.random.below(4)];
            noise(&mut day);
            day.errand(&errand, setting, &mut noise);
        }
        let found = names(&suggest(&day.calls, &Bounds::default()));
        right += u32::try_from(found.intersection(&planted).count()).unwrap_or(0);
        found_in_all += found.len();
        planted_in_all += planted.len();
    }
    let part = |of: usize| f64::from(right) / f64::from(u32::try_from(of).unwrap_or(u32::MAX));
    let (precision, recall) = (part(found_in_all), part(planted_in_all));
    println!("precision {precision:.3}, recall {recall:.3} over {planted_in_all} planted");
    assert!(precision >= 0.9 && recall >= 0.9, "precision {precision:.3}, recall {recall:.3}");
}
