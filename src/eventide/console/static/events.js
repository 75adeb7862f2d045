// Snapshots as they come. A page that nobody sees asks for nothing; one that has lost its engine tries again.

import { session } from "./session.js";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 5000;

export class Stream {
  constructor(onSnapshot, onState) {
    this.onSnapshot = onSnapshot;
    this.onState = onState;
    this.wait = FIRST_WAIT;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stop("hidden") : this.start()));
  }

  show(page, choices) {
    this.asked = new URLSearchParams({ page, ...choices }).toString();
    this.stop("changing");
    this.start();
  }

  start() {
    if (this.asked !== undefined && !this.aborting && !document.hidden) this.read();
  }

  stop() {
    clearTimeout(this.later);
    this.aborting?.abort();
    this.aborting = undefined;
  }

  async read() {
    const mine = (this.aborting = new AbortController());
    let state = "lost";
    try {
      const headers = { Authorization: `Bearer ${session()?.session ?? ""}` };
      const answer = await fetch(`api/events?${this.asked}`, { headers, signal: mine.signal });
      if (answer.status === 401 || answer.status === 403) {
        this.aborting = undefined;
        this.onState("refused");
        return;
      }
      if (answer.ok) {
        this.wait = FIRST_WAIT;
        await this.take(answer.body.getReader());
      }
    } catch (error) {
      if (mine.signal.aborted) return;
      state = error instanceof SyntaxError ? "broken" : "lost";
    }
    if (mine !== this.aborting) return;
    this.aborting = undefined;
    this.onState(this.ended ? "ended" : state);
    this.later = setTimeout(() => this.start(), this.wait);
    this.wait = Math.min(LONGEST_WAIT, this.wait * 1.5);
  }

  async take(reader) {
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        if (event.startsWith("event: end")) this.ended = true;
        else if (event.startsWith("data: ")) {
          this.ended = false;
          this.onState("connected");
          this.onSnapshot(JSON.parse(event.slice(6)));
        }
      }
    }
  }
}
