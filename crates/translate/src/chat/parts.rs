//! Puts the parts of an answer in order, one after the other, even if their pieces come
//! interleaved.
//!
//! The front part is written as it comes. Pieces of later parts wait until the front part is complete. A
//! text is complete as soon as another part follows, and a call when its arguments are a whole object
//! that is not empty. At the end of the answer, every part is complete. Parts are ordered by their
//! beginnings.

use std::collections::VecDeque;

use protocol::failure::{BadAnswer, MAX_KEPT};

use super::{
    calls::Calls,
    chunk::ToolCall,
    provider::ClientAnswer,
    writer::{Part, Writer},
};

/// The most calls of tools in an answer.
pub const MAX_CALLS: usize = 1024;

/// The longest id or name of a call, in bytes.
pub const MAX_CALL_WORD: usize = 1024;

/// The memory of a waiting part beside its text, in bytes.
const OVERHEAD: usize = 128;

/// The parts that are not complete, and the calls so far.
#[derive(Debug, Default)]
pub struct Parts {
    waiting: VecDeque<WaitingText>,
    /// Whether the first waiting part has been opened.
    open: bool,
    calls: Calls,
    /// Calls that have been opened.
    written: usize,
    waiting_bytes: usize,
    /// White space that may be the beginning of a text.
    blank: String,
    /// Whether any part has begun.
    any: bool,
}

#[derive(Debug)]
struct WaitingText {
    part: Part,
    /// The part that has not been written.
    text: String,
}

impl Parts {
    /// How many calls of tools have been written.
    pub fn calls(&self) -> usize {
        self.written
    }

    /// Takes more thoughts, text or refusal. A text of white space is not written yet, because some
    /// models put an empty line between their thoughts and a call. It is written if text follows,
    /// or if the answer has no other part.
    ///
    /// # Errors
    /// [`BadAnswer`] when too much has to wait.
    pub fn text(
        &mut self,
        part: Part,
        text: &str,
        client: &mut ClientAnswer<'_, impl Writer>,
    ) -> Result<(), BadAnswer> {
        if text.is_empty() {
            return Ok(());
        }
        let goes_on = self.waiting.back().is_some_and(|last| last.part == part);
        if goes_on {
            return self.push(self.waiting.len() - 1, text, client);
        }
        if part == Part::Text && text.trim_ascii().is_empty() {
            self.blank.push_str(text);
            return self.keep(text.len());
        }
        let blank = self.take_blank();
        let blank = if part == Part::Text { blank } else { String::new() };
        self.begin(part, client)?;
        let last = self.waiting.len() - 1;
        self.push(last, &blank, client)?;
        self.push(last, text, client)
    }

    /// Takes a piece of a call. A call is not written before its name is known.
    ///
    /// # Errors
    /// [`BadAnswer`] when too much has to wait, too many tools are called, or one's id or name is
    /// endless.
    pub fn call(
        &mut self,
        piece: &ToolCall<'_>,
        client: &mut ClientAnswer<'_, impl Writer>,
    ) -> Result<(), BadAnswer> {
        if piece.id.len().max(piece.function.name.len()) > MAX_CALL_WORD {
            let why = format!("the id or name of a call is longer than {MAX_CALL_WORD} bytes");
            return Err(BadAnswer(why));
        }
        let number = match self.calls.of_piece(piece) {
            Some(number) => number,
            None => self.begin_call(piece, client)?,
        };
        if let Some(extra) = piece.extra_content.filter(|extra| extra.get() != "null") {
            client.writer.extra(number, extra.get());
        }
        self.name(number, piece, client);
        let Some(position) = self.position(number) else { return Ok(()) };
        let text = self.calls.take(number, piece);
        self.push(position, &text, client)
    }

    /// Ends the answer and writes the waiting parts. A call without a name is dropped.
    pub fn end(&mut self, client: &mut ClientAnswer<'_, impl Writer>) {
        let blank = self.take_blank();
        if !self.any && !blank.is_empty() {
            self.waiting.push_back(WaitingText { part: Part::Text, text: blank });
        }
        while !self.waiting.is_empty() {
            if !self.open {
                self.open_front(client);
            }
            self.close_front(client);
        }
        self.waiting_bytes = 0;
    }

    fn begin_call(
        &mut self,
        piece: &ToolCall<'_>,
        client: &mut ClientAnswer<'_, impl Writer>,
    ) -> Result<usize, BadAnswer> {
        let number = self.calls.len();
        if number == MAX_CALLS {
            return Err(BadAnswer(format!("the answer calls more than {MAX_CALLS} tools")));
        }
        self.take_blank();
        self.calls.begin(piece);
        let (id, name) = (piece.id.to_string(), piece.function.name.to_string());
        self.begin(Part::Call { id, name, number }, client)?;
        Ok(number)
    }

    /// The position of a call among the waiting parts; `None` if it is closed.
    fn position(&self, number: usize) -> Option<usize> {
        let is_it = |part: &Part| matches!(part, Part::Call { number: n, .. } if *n == number);
        self.waiting.iter().position(|waiting| is_it(&waiting.part))
    }

    /// Completes the id and the name of a call that has not been opened.
    fn name(
        &mut self,
        number: usize,
        piece: &ToolCall<'_>,
        client: &mut ClientAnswer<'_, impl Writer>,
    ) {
        let Some(position) = self.position(number) else { return };
        let Part::Call { id, name, .. } = &mut self.waiting[position].part else { return };
        if id.is_empty() {
            id.push_str(&piece.id);
        }
        if name.is_empty() {
            name.push_str(&piece.function.name);
        }
        self.advance(client);
    }

    fn begin(
        &mut self,
        part: Part,
        client: &mut ClientAnswer<'_, impl Writer>,
    ) -> Result<(), BadAnswer> {
        self.any = true;
        self.waiting.push_back(WaitingText { part, text: String::new() });
        self.keep(OVERHEAD)?;
        self.advance(client);
        Ok(())
    }

    fn push(
        &mut self,
        position: usize,
        text: &str,
        client: &mut ClientAnswer<'_, impl Writer>,
    ) -> Result<(), BadAnswer> {
        if text.is_empty() {
            return Ok(());
        }
        if position == 0 && self.open {
            client.writer.delta(text, client.out);
            self.advance(client);
            return Ok(());
        }
        self.waiting[position].text.push_str(text);
        self.keep(text.len())
    }

    fn keep(&mut self, bytes: usize) -> Result<(), BadAnswer> {
        self.waiting_bytes += bytes;
        if self.waiting_bytes > MAX_KEPT {
            return Err(BadAnswer(format!(
                "more than {MAX_KEPT} bytes of the answer have to wait"
            )));
        }
        Ok(())
    }

    fn take_blank(&mut self) -> String {
        self.waiting_bytes -= self.blank.len();
        std::mem::take(&mut self.blank)
    }

    /// Opens the front part. While it is complete and others wait behind it, closes it and opens
    /// the next.
    fn advance(&mut self, client: &mut ClientAnswer<'_, impl Writer>) {
        while let Some(front) = self.waiting.front() {
            let nameless = matches!(&front.part, Part::Call { name, .. } if name.is_empty());
            if !self.open && !nameless {
                self.open_front(client);
            }
            if self.waiting.len() == 1 || !self.front_is_complete() {
                return;
            }
            self.close_front(client);
        }
    }

    fn front_is_complete(&self) -> bool {
        match self.waiting.front().map(|front| &front.part) {
            Some(Part::Call { number, .. }) => self.calls.is_complete(*number),
            _ => true,
        }
    }

    fn open_front(&mut self, client: &mut ClientAnswer<'_, impl Writer>) {
        let Some(front) = self.waiting.front_mut() else { return };
        if matches!(&front.part, Part::Call { name, .. } if name.is_empty()) {
            return;
        }
        client.writer.open(&front.part, client.out);
        self.open = true;
        self.written += usize::from(matches!(front.part, Part::Call { .. }));
        let text = std::mem::take(&mut front.text);
        self.waiting_bytes = self.waiting_bytes.saturating_sub(OVERHEAD + text.len());
        if !text.is_empty() {
            client.writer.delta(&text, client.out);
        }
    }

    fn close_front(&mut self, client: &mut ClientAnswer<'_, impl Writer>) {
        let front = self.waiting.pop_front();
        if !std::mem::take(&mut self.open) {
            // A call without a name is dropped, and waits no longer.
            let bytes = front.map_or(0, |front| OVERHEAD + front.text.len());
            self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
            return;
        }
        if let Some(WaitingText { part: Part::Call { number, .. }, .. }) = front {
            let rest = self.calls.rest(number);
            if !rest.is_empty() {
                client.writer.delta(&rest, client.out);
            }
        }
        client.writer.close(client.out);
    }
}
