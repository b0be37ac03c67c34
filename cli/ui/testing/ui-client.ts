import { randomBytes } from 'node:crypto';
import { type IncomingHttpHeaders, request as httpRequest } from 'node:http';
import jsonpatch, { type Operation } from 'fast-json-patch';
import { Client } from '../../../kube/client.js';
import { systemClock } from '../../../kube/clock.js';
import type { PageFiles } from '../html.js';
import type { ServerView } from '../protocol.js';
import { Ui } from '../serve-ui.js';
import type { WatchedCluster } from './watched-cluster.js';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const NO_PAGE: PageFiles = { script: '// page', style: '/* page */' };

/** The server, by default on a free port. */
export function startUi(cluster: WatchedCluster, { port = 0, page = NO_PAGE, clusterFlags = '' } = {}): Promise<Ui> {
  const client = new Client(cluster);
  const deps = { client, clusterFlags, clock: systemClock, random: Math.random, randomBytes, page };
  return Ui.start(deps, { port, namespace: 'mine' });
}

/** Sends one request with exactly these headers. */
export function send(
  port: number,
  path: string,
  { method = 'GET', headers = {} }: { method?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, method, headers: { connection: 'close', ...headers } };
    const sent = httpRequest(options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      );
    });
    sent.once('error', reject);
    sent.end();
  });
}

export interface BrowserSession {
  /** `/<secret>/` */
  readonly path: string;
  readonly cookie: string;
}

/** Opens the page as a browser does. */
export async function enter(ui: Ui): Promise<BrowserSession> {
  const { pathname, search } = new URL(ui.server.entranceUrl());
  const { headers, body } = await send(ui.server.port, pathname + search);
  const [cookie = ''] = headers['set-cookie']?.[0]?.split(';') ?? [];
  return { cookie, path: /url=([^"]+)"/.exec(body)?.[1] ?? '' };
}

/** Follows one view, as the page does. */
export class ViewReader {
  view: ServerView | undefined;
  /** `snapshot` or `patch`, in order. */
  readonly events: string[] = [];
  /** Everything that was received. */
  text = '';
  readonly #close: () => void;
  #wake: () => void = () => undefined;

  private constructor(ui: Ui, session: BrowserSession, query: string) {
    const headers = { cookie: session.cookie };
    const path = `${session.path}views?${query}`;
    let rest = '';
    const sent = httpRequest({ host: '127.0.0.1', port: ui.server.port, path, headers }, (response) => {
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        this.text += chunk;
        const blocks = (rest + chunk).split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) this.#receive(block);
        this.#wake();
      });
      response.once('error', () => undefined);
    });
    sent.once('error', () => undefined);
    sent.end();
    this.#close = () => sent.destroy();
  }

  static open(ui: Ui, session: BrowserSession, query: string): ViewReader {
    return new ViewReader(ui, session, query);
  }

  /** Waits until the view is as expected. */
  async until<View extends ServerView>(isExpected: (view: View) => boolean): Promise<View> {
    for (;;) {
      if (this.view !== undefined && isExpected(this.view as View)) return this.view as View;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  close(): void {
    this.#close();
  }

  #receive(block: string): void {
    const [, event, data] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? [];
    if (event === undefined || data === undefined) return;
    this.events.push(event);
    const value = JSON.parse(data) as unknown;
    this.view =
      event === 'snapshot'
        ? (value as ServerView)
        : (jsonpatch.applyPatch(this.view, value as Operation[]).newDocument ?? this.view);
  }
}
