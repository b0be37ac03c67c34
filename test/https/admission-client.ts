import { Agent, type RequestOptions, request } from 'node:https';
import type { TLSSocket } from 'node:tls';

export interface HttpResponse {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

export interface HttpRequest extends Pick<RequestOptions, 'method' | 'path'> {
  headers?: Record<string, string>;
  body?: string | Buffer;
  agent?: Agent;
}

/** Talks to a webhook as an API server does: HTTPS with kept-alive connections. */
export class AdmissionClient {
  /** One connection, which stays. */
  readonly agent: Agent;
  readonly #port: number;

  constructor(
    port: number,
    tls: { ca: string; servername?: string; maxVersion?: 'TLSv1.2' | 'TLSv1.3'; cert?: string; key?: string },
  ) {
    this.#port = port;
    this.agent = new Agent({ keepAlive: true, maxSockets: 1, ...tls });
  }

  send({ body = '', ...question }: HttpRequest = {}): Promise<HttpResponse> {
    const { method = 'POST', path = '/mutate-launcher-pods', agent = this.agent } = question;
    const headers = {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...question.headers,
    };
    return new Promise((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port: this.#port, method, path, agent, headers }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on('data', (chunk: Buffer) => chunks.push(chunk));
        answer.on('error', reject);
        answer.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: text });
        });
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }

  /** The error with which a request ends that has no answer. */
  async sendExpectingError(question: HttpRequest = {}): Promise<NodeJS.ErrnoException> {
    try {
      await this.send(question);
    } catch (error) {
      if (error instanceof Error) return error;
    }
    throw new Error('the request was answered');
  }

  /** The connections that are open and idle. */
  get sockets(): TLSSocket[] {
    return Object.values(this.agent.freeSockets).flatMap((sockets) => (sockets ?? []) as TLSSocket[]);
  }

  close(): void {
    this.agent.destroy();
  }
}
