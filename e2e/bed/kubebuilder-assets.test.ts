import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { findKubebuilderAssets } from './kubebuilder-assets.js';

describe('The programs that KUBEBUILDER_ASSETS names', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'kubebuilder-assets-'));
  });

  afterEach(() => rm(folder, { recursive: true }));

  const install = (name: string, version: string, mode = 0o755) =>
    writeFile(join(folder, name), `#!/bin/sh\necho '${version}'\n`, { mode });
  const errorOf = () =>
    findKubebuilderAssets(folder).then(
      () => 'no error',
      (error: unknown) => (error as Error).message,
    );

  it('are not used if the variable is unset or empty', async () => {
    expect(await findKubebuilderAssets('')).to.equal(undefined);
  });

  it('are used if their versions fit', async () => {
    await install('etcd', 'etcd Version: 3.6.4');
    await install('kube-apiserver', 'Kubernetes v1.35.1');
    expect(await findKubebuilderAssets(folder)).to.deep.equal({
      etcd: { command: join(folder, 'etcd'), args: [] },
      apiServer: { command: join(folder, 'kube-apiserver'), args: [] },
    });
  });

  it('are rejected if one is missing or cannot be executed, and the message names it and the way out', async () => {
    await install('etcd', 'etcd Version: 3.6.4', 0o644);
    const message = await errorOf();
    expect(message).to.include(`${join(folder, 'etcd')} and ${join(folder, 'kube-apiserver')} cannot be run`);
    expect(message).to.include('unset KUBEBUILDER_ASSETS to build them from source');
  });

  for (const version of ['v1.33.4', 'v1.36.0', 'v2.34.0', 'unknown']) {
    it(`are rejected if kube-apiserver has the version ${version}`, async () => {
      await install('etcd', 'etcd Version: 3.5.0');
      await install('kube-apiserver', `Kubernetes ${version}`);
      expect(await errorOf()).to.include(`"Kubernetes ${version}", and the test bed needs 1.34 or 1.35`);
    });
  }

  it('are rejected if etcd is older than 3.5', async () => {
    await install('etcd', 'etcd Version: 3.4.30');
    await install('kube-apiserver', 'Kubernetes v1.34.1');
    expect(await errorOf()).to.include('"etcd Version: 3.4.30", and the test bed needs 3.5 or newer');
  });
});
