import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ImageRegistry } from './registry.js';

describe('The registry of real nodes', () => {
  let folder: string;
  let registry: ImageRegistry;
  let url: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-registry-'));
    const image = { name: 'quay.io/team/tool:1', config: {}, files: [{ target: '/file', text: 'text' }] };
    registry = await ImageRegistry.start(folder, [image], { port: 0, address: '127.0.0.1' });
    url = `http://127.0.0.1:${String(registry.port)}/v2`;
  });
  after(async () => {
    registry.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('serves an image by tag and by digest with all its blobs', async () => {
    const byTag = await fetch(`${url}/team/tool/manifests/1?ns=quay.io`);
    const body = await byTag.text();
    const digest = `sha256:${createHash('sha256').update(body).digest('hex')}`;
    expect(byTag.headers.get('content-type')).to.equal('application/vnd.oci.image.manifest.v1+json');
    expect(byTag.headers.get('docker-content-digest')).to.equal(digest);
    const byDigest = await fetch(`${url}/team/tool/manifests/${digest}?ns=quay.io`);
    expect(await byDigest.text()).to.equal(body);
    const { config, layers } = JSON.parse(body) as Record<'config', Blob> & Record<'layers', Blob[]>;
    for (const blob of [config, ...layers]) {
      const answer = await fetch(`${url}/team/tool/blobs/${blob.digest}`);
      const bytes = Buffer.from(await answer.arrayBuffer());
      expect(bytes.length).to.equal(blob.size);
      expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).to.equal(blob.digest);
    }
  });

  it('answers HEAD without a body', async () => {
    const answer = await fetch(`${url}/team/tool/manifests/1?ns=quay.io`, { method: 'HEAD' });
    expect(answer.status).to.equal(200);
    expect(await answer.text()).to.equal('');
  });

  it('does not know images of another host, other tags and other blobs', async () => {
    const paths = ['manifests/1?ns=docker.io', 'manifests/2?ns=quay.io', `blobs/sha256:${'0'.repeat(64)}`];
    for (const path of paths) expect((await fetch(`${url}/team/tool/${path}`)).status, path).to.equal(404);
  });
});

interface Blob {
  readonly digest: string;
  readonly size: number;
}
