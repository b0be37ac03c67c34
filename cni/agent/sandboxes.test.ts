import { lutimes, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { systemClock } from '../../kube/clock.js';
import { silentLogger } from '../../kube/log.js';
import { Sandboxes } from './sandboxes.js';

describe('Sandboxes', () => {
  let root: string;
  let folder: string;
  let namespaces: string;

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'sandboxes-'));
    [folder, namespaces] = [join(root, 'sandboxes'), join(root, 'run', 'netns')];
    await mkdir(namespaces, { recursive: true });
  });

  afterEach(() => rm(root, { recursive: true, force: true }));

  const started = () => new Sandboxes({ folder, namespaces, clock: systemClock, log: silentLogger });

  async function known(): Promise<{ existing: string[]; ended: string[] }> {
    const { existing, ended } = await started().known();
    return { existing: [...existing].sort(), ended: [...ended] };
  }

  /** @returns the path for CNI_NETNS */
  async function namespace(name: string): Promise<string> {
    await writeFile(join(namespaces, name), '');
    return join(namespaces, name);
  }

  it('exist while the runtime keeps the files of their network namespaces', async () => {
    const sandboxes = started();
    for (const containerId of ['c1', 'c2']) sandboxes.add({ containerId, netns: await namespace(containerId) });
    expect(await known()).to.deep.equal({ existing: ['c1', 'c2'], ended: [] });
    await rm(join(namespaces, 'c1'));
    expect(await known()).to.deep.equal({ existing: ['c2'], ended: ['c1'] });
  });

  it('are known to have ended by later processes of the agent, and forgotten a quarter of an hour after their first ADD', async () => {
    started().add({ containerId: 'c1', netns: join(namespaces, 'n1') });
    for (let process = 0; process < 2; process++) expect((await known()).ended).to.deep.equal(['c1']);
    const quarterAgo = Date.now() / 1_000 - 901;
    await lutimes(join(folder, 'c1'), quarterAgo, quarterAgo);
    expect((await known()).ended).to.deep.equal(['c1']);
    expect([(await known()).ended, await readdir(folder)]).to.deep.equal([[], []]);
  });

  it('are known to the next process of the agent', async () => {
    started().add({ containerId: 'c1', netns: await namespace('n1') });
    expect((await known()).existing).to.deep.equal(['c1']);
  });

  it('are recorded once for all of their interfaces', async () => {
    const netns = await namespace('n1');
    for (let interfaces = 0; interfaces < 2; interfaces++) started().add({ containerId: 'c1', netns });
    expect(await readdir(folder)).to.deep.equal(['c1']);
  });

  for (const path of ['/var/run/netns/n1', '/run/netns/n1']) {
    it(`are found in the folder of the agent if the runtime calls it ${path}`, async () => {
      await namespace('n1');
      started().add({ containerId: 'c1', netns: path });
      expect((await known()).existing).to.deep.equal(['c1']);
    });
  }

  it('are unknown before the first ADD, and if their namespaces are in another folder', async () => {
    expect(await known()).to.deep.equal({ existing: [], ended: [] });
    const sandboxes = started();
    for (const netns of ['/proc/1/ns/net', '/other/run/netns/n1']) sandboxes.add({ containerId: 'c1', netns });
    expect(await known()).to.deep.equal({ existing: [], ended: [] });
  });

  it('do not make an ADD fail if they cannot be recorded', async () => {
    await writeFile(folder, 'a file');
    started().add({ containerId: 'c1', netns: await namespace('n1') });
  });
});
