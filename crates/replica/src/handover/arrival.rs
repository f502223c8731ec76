//! The end of a hand-over that receives the session.

/// A session on its way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival {
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The parts that go along are coming.
    Receiving,
    /// The fact that everything is staged is being stored.
    Staging,
    Staged,
    /// The fact that the session is taken is being stored.
    Taking,
    Taken,
    /// Nothing of the move is known here.
    Unknown,
    /// The fact that the move is refused is being stored. If that fails, the earlier state returns.
    Refusing(Undecided),
    Refused,
    /// The fact that nothing of the move is kept is being stored.
    Forgetting(Decided),
    Over,
}

/// The state of a move before its refusal is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Undecided {
    Staged,
    Unknown,
}

/// The state of a move before it is forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decided {
    Staged,
    Taken,
    Refused,
}

impl Decided {
    const fn stage(self) -> Stage {
        match self {
            Self::Staged => Stage::Staged,
            Self::Taken => Stage::Taken,
            Self::Refused => Stage::Refused,
        }
    }
}

/// The events at this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalInput {
    /// Everything that goes along has come, and is on the disk.
    Whole,
    /// The sender left before that, or sent parts that cannot be used.
    Broken,
    /// The session's present version names this member as owner, by this move or a later one.
    Ours,
    /// The owner asks whether the session is taken.
    Asked,
    /// The staged parts cannot be read any more.
    Lost,
    /// The owner knows of no such move. Before this input the driver must have checked whether the
    /// session's version names this member as its owner.
    Aborted,
    /// The last fact is stored. `false` means that it could not be stored, and nothing has changed.
    Kept(bool),
}

/// The facts that this end stores, each in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalFact {
    /// Everything that goes along lies aside.
    Staged,
    /// The session runs here.
    Taken,
    /// The session will never run here by this move.
    Refused,
    /// Nothing of the move is kept.
    Forgotten,
}

/// The driver's next steps, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalOutput {
    /// Store this. For [`ArrivalFact::Taken`] the files are put in their places first.
    Keep(ArrivalFact),
    /// The replica must expect, from now on, that this member becomes the session's owner.
    Expect,
    /// The replica must not expect that any more.
    Unexpect,
    /// Tell the owner that everything is staged.
    SayPrepared,
    /// Tell the owner that the session runs here.
    SayTaken,
    /// Tell the owner that the session will never run here by this move.
    SayRefused,
    /// Tell the owner that the move is not decided.
    SayUndecided,
    /// Run the session.
    Run,
    /// Remove the files that lie aside.
    Remove,
}

impl Default for Arrival {
    fn default() -> Self {
        Self::begin()
    }
}

impl Arrival {
    /// A session whose pieces begin to come.
    pub const fn begin() -> Self {
        Self { stage: Stage::Receiving }
    }

    /// A move of which nothing is known here although its owner asks: what was staged is lost.
    pub const fn unknown() -> Self {
        Self { stage: Stage::Unknown }
    }

    /// The state that follows from the fact stored by an earlier start of this member.
    pub const fn stored(fact: ArrivalFact) -> Self {
        let stage = match fact {
            ArrivalFact::Staged => Stage::Staged,
            ArrivalFact::Taken => Stage::Taken,
            ArrivalFact::Refused => Stage::Refused,
            ArrivalFact::Forgotten => Stage::Over,
        };
        Self { stage }
    }

    /// Whether nothing is left to do.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether the session waits for the owner's last step, or nothing of the move is known here.
    pub fn is_staged(&self) -> bool {
        matches!(self.stage, Stage::Staged | Stage::Unknown)
    }

    /// Handles an input. Returns what is to be done, in order.
    pub fn handle(&mut self, input: ArrivalInput) -> Vec<ArrivalOutput> {
        use ArrivalFact as Fact;
        use ArrivalInput as In;
        use ArrivalOutput as Out;
        let (stage, outputs) = match (self.stage, input) {
            (Stage::Receiving, In::Whole) => (Stage::Staging, vec![Out::Keep(Fact::Staged)]),
            (Stage::Receiving, In::Broken) | (Stage::Staging, In::Kept(false)) => {
                (Stage::Over, vec![Out::Remove, Out::SayRefused])
            }
            (Stage::Staging, In::Kept(true)) => {
                (Stage::Staged, vec![Out::Expect, Out::SayPrepared])
            }
            (Stage::Staged, In::Ours) => (Stage::Taking, vec![Out::Keep(Fact::Taken)]),
            (Stage::Taking, In::Kept(true)) => (Stage::Taken, vec![Out::Run]),
            (Stage::Staged | Stage::Taking, In::Lost) => refuses(Undecided::Staged),
            (Stage::Unknown, In::Lost | In::Asked) => refuses(Undecided::Unknown),
            (Stage::Refusing(_), In::Kept(true)) => {
                (Stage::Refused, vec![Out::Remove, Out::SayRefused])
            }
            // What could not be stored is tried again when the owner asks next.
            (Stage::Taking | Stage::Refusing(Undecided::Staged), In::Kept(false)) => {
                (Stage::Staged, vec![Out::SayUndecided])
            }
            (Stage::Refusing(Undecided::Unknown), In::Kept(false)) => {
                (Stage::Unknown, vec![Out::SayUndecided])
            }
            (Stage::Staged | Stage::Unknown, In::Aborted) => forgets(Decided::Staged),
            (Stage::Taken, In::Aborted) => forgets(Decided::Taken),
            (Stage::Refused, In::Aborted) => forgets(Decided::Refused),
            (Stage::Forgetting(decided), In::Kept(false)) => (decided.stage(), Vec::new()),
            (Stage::Forgetting(Decided::Staged), In::Kept(true)) => {
                (Stage::Over, vec![Out::Unexpect, Out::Remove])
            }
            // Until now the replica expected the session. Otherwise, before its owner had it back,
            // it could have been taken for a session that this disk forgot, and deleted.
            (Stage::Forgetting(Decided::Refused), In::Kept(true)) => {
                (Stage::Over, vec![Out::Unexpect])
            }
            (Stage::Forgetting(Decided::Taken), In::Kept(true)) => (Stage::Over, Vec::new()),
            (stage @ Stage::Taken, In::Asked) => (stage, vec![Out::SayTaken]),
            (stage @ Stage::Refused, In::Asked) => (stage, vec![Out::SayRefused]),
            (stage, In::Asked) => (stage, vec![Out::SayUndecided]),
            (stage, _) => (stage, Vec::new()),
        };
        self.stage = stage;
        outputs
    }
}

fn refuses(present: Undecided) -> (Stage, Vec<ArrivalOutput>) {
    (Stage::Refusing(present), vec![ArrivalOutput::Keep(ArrivalFact::Refused)])
}

fn forgets(decided: Decided) -> (Stage, Vec<ArrivalOutput>) {
    (Stage::Forgetting(decided), vec![ArrivalOutput::Keep(ArrivalFact::Forgotten)])
}
