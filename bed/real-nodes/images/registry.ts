import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { type Descriptor, type Image, MANIFEST_TYPE, storeImage } from './oci-image.js';

/** Where nodes find it, under the address of the API server. */
export const REGISTRY_PORT = 5000;

const MANIFEST = /^\/v2\/(.+)\/manifests\/([^/]+)$/;
const BLOB = /^\/v2\/.+\/blobs\/(sha256:[0-9a-f]{64})$/;

interface Content {
  /** Undefined for an image that it does not have. */
  readonly digest: string | undefined;
  readonly method: string | undefined;
  readonly type: string;
}

/**
 * A registry that serves images of all hosts, from which containerd pulls as from theirs.
 * @see https://github.com/opencontainers/distribution-spec/blob/v1.1.0/spec.md#pulling-manifests
 */
export class ImageRegistry {
  readonly #blobs: string;
  /** Manifests by the name of the image. */
  readonly #manifests: Map<string, Descriptor>;
  readonly #server = createServer((request, response) => {
    this.#answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });

  private constructor(blobs: string, manifests: Map<string, Descriptor>) {
    this.#blobs = blobs;
    this.#manifests = manifests;
  }

  /** @param folder for the blobs of the images */
  static async start(
    folder: string,
    images: readonly Image[],
    { port, address } = { port: REGISTRY_PORT, address: '0.0.0.0' },
  ): Promise<ImageRegistry> {
    const stored = await Promise.all(
      images.map(async (image) => [image.name, await storeImage(folder, image)] as const),
    );
    const registry = new ImageRegistry(folder, new Map(stored));
    await new Promise<void>((resolve, reject) => {
      registry.#server.once('error', reject).listen(port, address, resolve);
    });
    return registry;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Gives an image another name, too, as `docker tag` and `docker push` do. */
  tag(name: string, target: string): void {
    const manifest = this.#manifests.get(name);
    if (manifest === undefined) throw new Error(`the registry has no image ${name}`);
    this.#manifests.set(target, manifest);
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer({ url = '', method }: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(url, 'http://registry');
    const [, repository, reference = ''] = MANIFEST.exec(pathname) ?? [];
    if (repository !== undefined) {
      const digest = this.#digestOf(`${searchParams.get('ns') ?? ''}/${repository}`, reference);
      return this.#send(response, { digest, method, type: MANIFEST_TYPE });
    }
    return this.#send(response, { digest: BLOB.exec(pathname)?.[1], method, type: 'application/octet-stream' });
  }

  async #send(response: ServerResponse, { digest, method, type }: Content): Promise<void> {
    const path = digest && join(this.#blobs, digest.replace('sha256:', ''));
    const found = path && (await stat(path).catch(() => undefined));
    if (!found) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'Content-Length': found.size, 'Content-Type': type, 'Docker-Content-Digest': digest });
    if (method === 'HEAD') response.end();
    else await pipeline(createReadStream(path), response);
  }

  #digestOf(repository: string, reference: string): string | undefined {
    for (const [name, { digest }] of this.#manifests) {
      const isOfIt = name.startsWith(`${repository}:`);
      if (isOfIt && (reference === digest || name === `${repository}:${reference}`)) return digest;
    }
    return undefined;
  }
}
