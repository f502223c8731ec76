//! The end of a hand-over that gives the session away.

/// A session on its way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The running turn is coming to its end.
    Freezing,
    /// The parts that go along are being sent to the other end.
    Sending,
    /// The fact that the session has left is being stored.
    Leaving,
    /// The session has left, and the other end has not yet said that it took the session.
    Left,
    /// The other end refused. The fact that the session is back is being stored.
    Returning,
    /// The other end took the session. The fact that nothing is kept here any more is being stored.
    Dropping,
    Over,
}

/// The events at this end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DepartureInput {
    /// The turn has ended, no process is left, and the parts that go along are stored here, too.
    Frozen,
    /// The other end has staged everything.
    Prepared,
    /// The other end has taken the session.
    Taken,
    /// The other end does not take the session, and has stored that it never will by this move.
    Refused,
    /// A step before the session has left failed or took too long. After the session has left this
    /// input has no effect.
    GaveUp,
    /// The last fact is stored. `false` means that it was refused, and nothing has changed.
    Kept(bool),
}

/// The facts that this end stores, each in one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DepartureFact {
    /// The session belongs to the other member, with one move more. Everything that is needed to
    /// run it stays here.
    Left,
    /// The session belongs to this member again, with one move more.
    Returned,
    /// Nothing of the session is kept.
    Dropped,
}

/// The driver's next steps, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DepartureOutput {
    /// Send what goes along.
    Send,
    /// Store this.
    Keep(DepartureFact),
    /// Do not run the session any more, and ask the other end until it answers.
    Leave,
    /// Run the session here, as before.
    Run,
    /// The session belongs to the other member, and nothing is left to do.
    Gone,
}

/// The answer to the other end when it asks about a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The move is under way: the other end must ask again.
    Undecided,
    /// The session has left.
    Take,
    /// There is no such move, and never will be.
    Aborted,
}

impl Default for Departure {
    fn default() -> Self {
        Self::begin()
    }
}

impl Departure {
    /// A move that begins.
    pub const fn begin() -> Self {
        Self { stage: Stage::Freezing }
    }

    /// A move of an earlier start of this member that stored [`DepartureFact::Left`]. All other
    /// moves of an earlier start are forgotten, and so aborted.
    pub const fn left() -> Self {
        Self { stage: Stage::Left }
    }

    /// Whether nothing is left to do.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether the session has left, and the other end decides.
    pub fn has_left(&self) -> bool {
        self.stage == Stage::Left
    }

    /// The answer to the other end when it asks. For a move that is over or unknown nothing is
    /// kept, and the answer is [`Word::Aborted`].
    pub fn word(&self) -> Word {
        match self.stage {
            Stage::Left => Word::Take,
            Stage::Over => Word::Aborted,
            _ => Word::Undecided,
        }
    }

    /// Handles an input. Returns what is to be done, in order.
    pub fn handle(&mut self, input: DepartureInput) -> Vec<DepartureOutput> {
        use DepartureInput as In;
        use DepartureOutput as Out;
        let (stage, outputs) = match (self.stage, input) {
            (Stage::Freezing, In::Frozen) => (Stage::Sending, vec![Out::Send]),
            (Stage::Sending, In::Prepared) => {
                (Stage::Leaving, vec![Out::Keep(DepartureFact::Left)])
            }
            (Stage::Freezing | Stage::Sending, In::GaveUp | In::Refused)
            | (Stage::Leaving, In::Kept(false))
            | (Stage::Returning, In::Kept(true)) => (Stage::Over, vec![Out::Run]),
            (Stage::Leaving, In::Kept(true)) => (Stage::Left, vec![Out::Leave]),
            (Stage::Left, In::Taken) => (Stage::Dropping, vec![Out::Keep(DepartureFact::Dropped)]),
            (Stage::Left, In::Refused) => {
                (Stage::Returning, vec![Out::Keep(DepartureFact::Returned)])
            }
            (Stage::Dropping, In::Kept(true)) => (Stage::Over, vec![Out::Gone]),
            // The other end will say the same when it is asked again.
            (Stage::Dropping | Stage::Returning, In::Kept(false)) => (Stage::Left, Vec::new()),
            (stage, _) => (stage, Vec::new()),
        };
        self.stage = stage;
        outputs
    }
}
