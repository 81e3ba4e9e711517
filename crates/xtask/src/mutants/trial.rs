//! Tests all mutants of one crate: as many as possible in one program, the others each in a program of its own.

use super::build::{Built, CompileError, Copy};
use super::mutant::{Fate, Mutant};
use super::program::Program;
use super::rewrite::{Number, Owner, Rewritten, chooser, rewrite};
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

/// The mutants of a crate and what is known of them.
pub(super) struct Trial<'a> {
    package: &'a str,
    copy: &'a Copy,
    /// The files that contain mutants, and the root of the crate, as they are without one.
    sources: BTreeMap<String, String>,
    mutants: BTreeMap<Number, &'a Mutant>,
    fates: BTreeMap<Number, Fate>,
    /// Those that are not part of the common program.
    alone: BTreeSet<Number>,
    start: Instant,
}

/// A program that contains mutants, and the function that each is in.
struct Common {
    path: PathBuf,
    functions: BTreeMap<Number, Number>,
}

impl<'a> Trial<'a> {
    pub(super) fn new(package: &'a str, copy: &'a Copy, mutants: Vec<&'a Mutant>) -> anyhow::Result<Trial<'a>> {
        let files = mutants.iter().map(|mutant| mutant.file.clone()).chain([root_of(package)]);
        let sources = files.map(|file| copy.read(&file).map(|text| (file, text))).collect::<anyhow::Result<_>>()?;
        let (mutants, start) = ((1..).zip(mutants).collect(), Instant::now());
        Ok(Trial { package, copy, sources, mutants, fates: BTreeMap::new(), alone: BTreeSet::new(), start })
    }

    /// Tests them all.
    pub(super) fn run(mut self) -> anyhow::Result<Vec<(&'a Mutant, Fate)>> {
        self.say(&format!("building {} mutants", self.mutants.len()));
        let common = self.build()?;
        let (unviable, alone) = (self.fates.len(), self.alone.len());
        self.say(&format!("{unviable} do not compile, {alone} are to be built alone; running the tests once"));
        let folder = self.copy.root.join("crates").join(self.package);
        let program = Program::learn(&common.path, &folder, &self.copy.root)?;
        self.test_common(&program, &common.functions)?;
        self.test_alone(&program)?;
        let tested = self.mutants.iter().map(|(number, mutant)| match self.fates.get(number) {
            Some(fate) => Ok((*mutant, *fate)),
            None => bail!("{} was not tested", mutant.name),
        });
        tested.collect()
    }

    /// Builds the common program, without the mutants that the compiler refuses.
    fn build(&mut self) -> anyhow::Result<Common> {
        loop {
            let files = self.write()?;
            match self.copy.build(self.package)? {
                Built::Program(path) => {
                    let functions = files.into_values().flat_map(|file| file.functions).collect();
                    return Ok(Common { path, functions });
                }
                Built::Failed(errors) => self.drop_refused(&files, &errors)?,
            }
        }
    }

    /// Writes the mutants that are part of the common program.
    fn write(&mut self) -> anyhow::Result<BTreeMap<String, Rewritten>> {
        let mut written = BTreeMap::new();
        for (file, text) in &self.sources {
            let is_part = |(number, mutant): &(&Number, &&Mutant)| {
                mutant.file == *file && !self.fates.contains_key(number) && !self.alone.contains(number)
            };
            let mutants = self.mutants.iter().filter(is_part).map(|(number, mutant)| (*number, *mutant)).collect();
            let rewritten = rewrite(text, &mutants).with_context(|| format!("{file}: could not rewrite"))?;
            let end = if *file == root_of(self.package) { chooser(self.mutants.len()) } else { String::new() };
            self.copy.write(file, &format!("{}{end}", rewritten.text))?;
            self.alone.extend(&rewritten.alone);
            written.insert(file.clone(), rewritten);
        }
        Ok(written)
    }

    /// An error in the body of a mutant is due to the mutant. An error in an unchanged or boxed body is due to the choice of bodies.
    fn drop_refused(&mut self, files: &BTreeMap<String, Rewritten>, errors: &[CompileError]) -> anyhow::Result<()> {
        let mut dropped = 0;
        for error in errors {
            match error.places.iter().find_map(|(file, line)| owner(files.get(file)?, *line)) {
                Some(Owner::Mutant(number)) => _ = self.fates.insert(number, Fate::Unviable),
                Some(Owner::Boxed(number)) => _ = self.alone.insert(number),
                Some(Owner::Function(first)) => {
                    let functions = files.values().flat_map(|file| &file.functions);
                    self.alone.extend(functions.filter(|(_, function)| **function == first).map(|(number, _)| *number));
                }
                None => continue,
            }
            dropped += 1;
        }
        match errors.first() {
            Some(error) if dropped == 0 => bail!("{} does not compile:\n{}", self.package, error.text),
            _ => Ok(()),
        }
    }

    /// Tests the mutants of the common program, several at a time.
    fn test_common(&mut self, program: &Program, functions: &BTreeMap<Number, Number>) -> anyhow::Result<()> {
        self.say(&format!("testing {} mutants", functions.len()));
        let (queue, results) = (Mutex::new(functions.iter()), Mutex::new(Vec::new()));
        let next = || queue.lock().ok()?.next();
        let work = || -> anyhow::Result<()> {
            while let Some((number, function)) = next() {
                let mutant = self.mutants[number];
                let fate = program.test(*number, Some(*function), &mutant.file)?;
                let Ok(mut results) = results.lock() else { break };
                results.push((*number, fate));
                self.report(mutant, fate, results.len());
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let threads = std::thread::available_parallelism().map_or(1, usize::from);
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
        })?;
        self.fates.extend(results.into_inner().unwrap_or_default());
        Ok(())
    }

    /// Builds and tests the others one by one, with nothing else changed.
    fn test_alone(&mut self, program: &Program) -> anyhow::Result<()> {
        for (file, text) in &self.sources {
            self.copy.write(file, text)?;
        }
        for (count, number) in self.alone.clone().into_iter().enumerate() {
            let mutant = self.mutants[&number];
            let text = &self.sources[&mutant.file];
            self.copy.write(&mutant.file, &mutant.apply(text, 0..text.len()))?;
            let fate = match self.copy.build(self.package)? {
                Built::Program(path) => program.rebuilt(&path).test(number, None, &mutant.file)?,
                Built::Failed(_) => Fate::Unviable,
            };
            self.copy.write(&mutant.file, text)?;
            self.fates.insert(number, fate);
            self.report(mutant, fate, count + 1);
        }
        Ok(())
    }

    fn report(&self, mutant: &Mutant, fate: Fate, count: usize) {
        match fate {
            Fate::Missed => self.say(&format!("missed {}", mutant.name)),
            Fate::Timeout => self.say(&format!("timeout {}", mutant.name)),
            _ if count.is_multiple_of(100) => self.say(&format!("{count} tested")),
            _ => {}
        }
    }

    fn say(&self, what: &str) {
        println!("{} after {} s: {what}", self.package, self.start.elapsed().as_secs());
    }
}

fn root_of(package: &str) -> String {
    format!("crates/{package}/src/lib.rs")
}

fn owner(file: &Rewritten, line: usize) -> Option<Owner> {
    file.lines.iter().find(|(lines, _)| lines.contains(&line)).map(|(_, owner)| *owner)
}

#[cfg(test)]
mod tests;
