import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Server, createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { ReplaceOperation } from 'fast-json-patch';
import { readReview, writeReview } from '../../admission/review.js';
import type { Pod } from '../../api/pod.js';
import type { Bed } from '../bed.js';

/** @param vmi the VMI's name, by the annotation of the launcher */
type PatchLauncher = (pod: Pod, vmi: string) => Promise<ReplaceOperation<string>[]>;

/** A mutating webhook for launchers. A failure refuses the launcher. */
export class PatchServer {
  readonly #server: Server;

  private constructor(tls: { cert: Buffer; key: Buffer }, patch: PatchLauncher) {
    this.#server = createServer(tls, (incoming, outgoing) => void answer(incoming, outgoing, patch));
  }

  static async open({ certificates }: Bed, patch: PatchLauncher): Promise<PatchServer> {
    const [cert, key] = await Promise.all([readFile(certificates.servingCert), readFile(certificates.servingKey)]);
    const server = new PatchServer({ cert, key }, patch);
    await once(server.#server.listen(0, '127.0.0.1'), 'listening');
    return server;
  }

  get url(): string {
    return `https://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await once(this.#server.close(), 'close');
  }
}

async function answer(incoming: IncomingMessage, outgoing: ServerResponse, patch: PatchLauncher): Promise<void> {
  try {
    const { uid, object, namespace } = readReview(await json(incoming));
    const pod = object as Pod;
    const vmi = pod.metadata.annotations?.['kubevirt.io/domain'];
    const launcher = { ...pod, metadata: { ...pod.metadata, namespace } };
    const operations = vmi === undefined ? [] : await patch(launcher, vmi);
    outgoing.setHeader('content-type', 'application/json');
    outgoing.end(writeReview(uid, { allowed: true, patch: operations }));
  } catch {
    outgoing.writeHead(500).end();
  }
}
