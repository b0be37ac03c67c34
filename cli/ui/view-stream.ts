import type { Response } from 'express';
import jsonpatch from 'fast-json-patch';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import { escapeLine } from '../terminal.js';
import type { ServerView } from './protocol.js';

/** Changes are collected for this time: a person sees no difference, and a busy cluster costs little. */
const COLLECT_MS = 250;
/** All views together are built in at most this share of the time: views of many VMs take long, and nothing else runs meanwhile. */
const BUILD_SHARE = 0.1;
/** Notices closed connections, and tells the page that the server is there. */
const HEARTBEAT_MS = 10_000;

interface OpenStream {
  readonly response: Response;
  readonly build: () => ServerView;
  /** The last JSON that was sent. */
  sent: string;
  /** The browser has not read the last message yet. */
  isBlocked: boolean;
  /** Not built again before this time, in milliseconds. */
  restsUntil: number;
  cancelSend: (() => void) | undefined;
}

/**
 * Sends views as server-sent events: a snapshot first, then patches (RFC 6902). What changes while a browser does not read is not queued: it
 * gets one patch to the newest state when it reads again.
 */
export class ViewStreams {
  readonly #clock: Clock;
  readonly #max: number;
  readonly #streams = new Set<OpenStream>();
  #cancelHeartbeat: (() => void) | undefined;

  constructor(clock: Clock, max: number) {
    this.#clock = clock;
    this.#max = max;
  }

  get isFull(): boolean {
    return this.#streams.size >= this.#max;
  }

  /** Sends a view and its changes until the connection is closed. */
  open(response: Response, build: () => ServerView): void {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const stream: OpenStream = { response, build, sent: '', isBlocked: false, restsUntil: 0, cancelSend: undefined };
    this.#streams.add(stream);
    response.once('close', () => {
      stream.cancelSend?.();
      this.#streams.delete(stream);
    });
    response.on('drain', () => {
      stream.isBlocked = false;
      this.#changed(stream);
    });
    this.#send(stream);
    this.#beat();
  }

  /** Called after each change of anything that a view may show. */
  changed(): void {
    for (const stream of this.#streams) this.#changed(stream);
  }

  /** Ends all streams. */
  close(): void {
    this.#cancelHeartbeat?.();
    for (const stream of this.#streams) {
      stream.cancelSend?.();
      stream.response.destroy();
    }
  }

  #changed(stream: OpenStream): void {
    const pause = Math.max(COLLECT_MS, stream.restsUntil - this.#clock.now());
    stream.cancelSend ??= this.#clock.setTimer(pause, () => {
      stream.cancelSend = undefined;
      this.#send(stream);
    });
  }

  #send(stream: OpenStream): void {
    const begin = this.#clock.now();
    send(stream);
    const end = this.#clock.now();
    stream.restsUntil = end + ((end - begin) * this.#streams.size) / BUILD_SHARE;
  }

  #beat(): void {
    this.#cancelHeartbeat ??= this.#clock.setTimer(HEARTBEAT_MS, () => {
      this.#cancelHeartbeat = undefined;
      for (const stream of this.#streams) if (!stream.isBlocked) write(stream, 'event: beat\ndata:\n\n');
      if (this.#streams.size > 0) this.#beat();
    });
  }
}

function send(stream: OpenStream): void {
  if (stream.isBlocked) return;
  try {
    // names and messages are written by tenants: characters that are invisible or change the direction of text are escaped
    const next = JSON.stringify(stream.build(), (_key, value: unknown) =>
      typeof value === 'string' ? escapeLine(value) : value,
    );
    if (next === stream.sent) return;
    const patch = stream.sent === '' ? undefined : patchOf(stream.sent, next);
    stream.sent = next;
    // a patch may be longer than what it patches
    const message =
      patch === undefined || patch.length > next.length
        ? `event: snapshot\ndata: ${next}`
        : `event: patch\ndata: ${patch}`;
    write(stream, `${message}\n\n`);
  } catch (error) {
    write(stream, `event: failure\ndata: ${JSON.stringify(messageOf(error))}\n\n`);
  }
}

function write(stream: OpenStream, text: string): void {
  stream.isBlocked = !stream.response.write(text);
}

function patchOf(before: string, after: string): string {
  return JSON.stringify(jsonpatch.compare(JSON.parse(before) as object, JSON.parse(after) as object));
}
