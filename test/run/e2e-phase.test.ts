import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { reasonAgainstRealNodes } from '../../bed/real-nodes/isolation.js';
import { LANES_OF_FOLDERS, filesOf } from './e2e-lanes.js';
import { e2ePhases } from './e2e-phase.js';
import { ROOT, findFiles } from '../source-files.js';

const ROW = /^\| `e2e\/(.*)\/` \| (.*) \| (.*) \| (.*) \| (.*) \|$/gm;
const GIB = 2 ** 30;

describe('The phase of e2e tests', () => {
  const phases = (options: { files?: string[] }, memory = 24 * GIB) =>
    e2ePhases({ name: 'e2e', limitMs: 1000, ...options }, memory);

  before(function () {
    if (process.env.E2E_KUBECONFIG !== undefined) this.skip();
  });

  it('is two processes with different ports, whose files are disjoint and complete', () => {
    const [first, second, ...others] = phases({});
    expect(others).to.deep.equal([]);
    expect(first?.env?.BED_PORTS).not.to.equal(second?.env?.BED_PORTS);
    const folders = /^e2e\/@\((.*)\)\/\*\.e2e\.ts$/.exec(first?.args.at(-1) ?? '')?.[1];
    expect(folders).to.match(/^\w/);
    expect(second?.args.at(-1)).to.equal(`e2e/!(${folders}|nodes)/*.e2e.ts`);
  });

  it('is one process if files are named or memory is scarce', () => {
    expect(phases({ files: ['e2e/cli/ui.e2e.ts'] })).to.have.length(1);
    expect(phases({}, 8 * GIB).map(({ args }) => args.at(-1))).to.deep.equal([filesOf('bed')]);
  });

  it("says what is there instead of nodes with KubeVirt's own programs", () => {
    const before = process.env.NODES;
    process.env.NODES = 'kubevirt';
    try {
      expect(() => phases({})).to.throw(/^NODES=kubevirt: .*NODES=guests .*RUNTIME=containerd-2/);
    } finally {
      if (before === undefined) delete process.env.NODES;
      else process.env.NODES = before;
    }
  });

  it('starts guests only for the stories that have them in their names', function () {
    if (reasonAgainstRealNodes() !== undefined) this.skip();
    const found = phases({ files: ['e2e/nodes/guest-dhcp.e2e.ts', 'e2e/nodes/ipv6.e2e.ts'] });
    expect(found.map(({ args, env }) => [args.at(-1), env?.BED_GUESTS])).to.deep.equal([
      ['e2e/nodes/ipv6.e2e.ts', undefined],
      ['e2e/nodes/guest-dhcp.e2e.ts', 'yes'],
    ]);
  });
});

describe('The lanes of stories', () => {
  it('name each folder that has stories, and no other', async () => {
    const folders = (await findFiles('.e2e.ts')).map((path) => path.split('/')[1]);
    expect([...new Set(folders)].sort()).to.deep.equal(Object.keys(LANES_OF_FOLDERS).sort());
  });

  it('are those that the page on kind shows', async () => {
    const page = await readFile(join(ROOT, 'bed/kind/README.md'), 'utf8');
    const rows = [...page.matchAll(ROW)].map(([, folder = '', ...cells]) => {
      const lanes = (['bed', 'cluster', 'nodes', 'guests'] as const).filter((_, index) => cells[index] === 'yes');
      return [folder, lanes] as const;
    });
    expect(Object.fromEntries(rows)).to.deep.equal(LANES_OF_FOLDERS);
  });
});
