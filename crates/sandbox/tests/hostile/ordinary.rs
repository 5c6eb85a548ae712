//! Ordinary work goes on inside the walls.

use sandbox::{Confinement, Exit, Level, Network};

use crate::kit::folders::Folder;
use crate::kit::rooms::shared_launcher;
use crate::kit::users::as_each_user;
use crate::probing::{probe, probe_outside};

#[test]
fn everything_that_programs_are_made_of_works() {
    as_each_user(|| {
        let folder = Folder::outside();
        let (list, _) = probe_outside(&folder, &["list"]);
        let names: Vec<_> = list
            .lines()
            .filter(|line| line.ends_with("\twork"))
            .filter_map(|line| line.split('\t').next())
            .collect();
        assert!(names.len() >= 24, "{list}");
        let in_a_folder = Confinement {
            writable: vec![folder.clone()],
            folder: folder.clone(),
            ..Confinement::default()
        };
        let with_a_network = Confinement { network: Network::Allow, ..Confinement::default() };
        let level = shared_launcher().walls().level();
        for confinement in [Confinement::default(), in_a_folder, with_a_network] {
            for name in &names {
                // Without control groups nobody would count the memory of such files.
                if *name == "memfd-exec" && level < Level::L3 {
                    continue;
                }
                let (said, exit) = probe(&confinement, &[name]);
                let works = said.starts_with("works: ") && exit == Exit::Code(0);
                assert!(works, "`{name}` does not work: {said} ({exit})");
            }
        }
    });
}
