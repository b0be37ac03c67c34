import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type Import, circlesOf, importsOf, isTestCode, PACKAGE_IMPORTERS, roomOf, violationOf } from './layers.js';
import { ROOT, findFiles } from '../source-files.js';

describe('the layers', () => {
  let imports: Import[] = [];

  before(async () => {
    const files = [...(await findFiles('.ts')), ...(await findFiles('.tsx'))];
    const read = async (file: string) => importsOf(file, await readFile(join(ROOT, file), 'utf8'));
    imports = (await Promise.all(files.map(read))).flat();
  });

  it('are respected by every import', () => {
    expect(imports.length).to.be.greaterThan(100);
    expect(imports.flatMap((found) => violationOf(found) ?? [])).to.deep.equal([]);
  });

  it('have no circle of files', () => {
    expect(circlesOf(imports, (path) => path)).to.deep.equal([]);
  });

  it('have no circle of folders', () => {
    expect(circlesOf(imports, roomOf)).to.deep.equal([]);
  });

  it('find a circle that only types close, and name its files', () => {
    const a = importsOf('kube/a.ts', `import type { B } from './b.js';`);
    const b = importsOf('kube/b.ts', `import { a } from './a.js';`);
    expect(circlesOf([...a, ...b], (path) => path)).to.deep.equal([['kube/a.ts', 'kube/b.ts']]);
  });

  it('find a circle of test code, but none of files that only lead to it', () => {
    const [before, a, b] = [
      importsOf('bed/before.ts', `import './network/a.js';`),
      importsOf('bed/network/a.ts', `import '../faults/b.js';`),
      importsOf('bed/faults/b.ts', `import '../network/a.js'; import '../after.js';`),
    ];
    const imports = [...before, ...a, ...b];
    expect(circlesOf(imports, (path) => path)).to.deep.equal([['bed/faults/b.ts', 'bed/network/a.ts']]);
    expect(circlesOf(imports, roomOf)).to.deep.equal([['bed/faults', 'bed/network']]);
  });

  it('find no circle in a test that uses the test support of its folder', () => {
    const test = importsOf('kube/a.test.ts', `import './testing/b.js';`);
    const support = importsOf('kube/testing/b.ts', `import '../a.js';`);
    expect(circlesOf([...test, ...support], roomOf)).to.deep.equal([]);
  });

  it('are made of files that exist', () => {
    const lost = imports.filter(
      ({ target }) => target !== undefined && 'path' in target && !existsSync(join(ROOT, target.path)),
    );
    expect(lost.map(({ file, specifier }) => `${file}: ${specifier}`)).to.deep.equal([]);
  });

  it('list the importers of every shipped package, and of no other', async () => {
    const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { dependencies: object };
    expect(Object.keys(PACKAGE_IMPORTERS).sort()).to.deep.equal(Object.keys(dependencies).sort());
  });

  const cases: { name: string; file: string; text: string; expect?: string }[] = [
    { name: 'api may import Node', file: 'api/names.ts', text: `import { createHash } from 'node:crypto';` },
    { name: 'api imports itself only', file: 'api/a.ts', text: `import '../kube/x.js';`, expect: 'itself only' },
    { name: 'type imports count', file: 'api/a.ts', text: `import type X from '../kube/x.js';`, expect: 'itself only' },
    { name: 're-exports count', file: 'kube/a.ts', text: `export * from '../process/x.js';`, expect: 'may import api' },
    { name: 'dynamic imports count', file: 'kube/a.ts', text: `import('../webhook/x.js')`, expect: 'may import api' },
    { name: 'processes may import process/', file: 'controller/claims/a.ts', text: `import '../../process/x.js';` },
    {
      name: 'processes do not import each other',
      file: 'controller/a.ts',
      text: `import '../webhook/x.js';`,
      expect: 'controller may import api, kube, process, cluster',
    },
    { name: 'ipam may use the library', file: 'ipam/claims/a.ts', text: `import '../../addressing/x.js';` },
    {
      name: 'the directory does not know the reconcilers',
      file: 'addressing/directory/a.ts',
      text: `import '../../ipam/pools/x.js';`,
      expect: 'may import api, kube, cluster, addressing',
    },
    {
      name: 'the controller does not know the IPAM',
      file: 'controller/a.ts',
      text: `import '../addressing/x.js';`,
      expect: 'controller may import',
    },
    {
      name: 'the library does not know ipam',
      file: 'addressing/a.ts',
      text: `import '../ipam/x.js';`,
      expect: 'may import api',
    },
    { name: 'the agent may use the library', file: 'cni/agent/a.ts', text: `import '../../addressing/x.js';` },
    {
      name: 'the agent may not import the rest of ipam',
      file: 'cni/agent/a.ts',
      text: `import '../../ipam/x.js';`,
      expect: 'cni may import',
    },
    {
      name: 'a package may be imported by its importers',
      file: 'kube/transport/credentials.ts',
      text: `import '@kubernetes/client-node/dist/config.js';`,
    },
    {
      name: 'a package may not be imported by other files',
      file: 'kube/client.ts',
      text: `import '@kubernetes/client-node';`,
      expect: 'kube/transport/credentials.ts',
    },
    { name: 'kube does not log itself', file: 'kube/a.ts', text: `import pino from 'pino';`, expect: 'process/log.ts' },
    { name: 'the executable starts processes', file: 'holdfast.ts', text: `import('./webhook/main.js')` },
    {
      name: 'the executable may not import other files of processes',
      file: 'holdfast.ts',
      text: `import('./webhook/x.js')`,
      expect: 'holdfast.ts may',
    },
    {
      name: 'tests may import all shipped code and any package',
      file: 'kube/a.test.ts',
      text: `import '../webhook/x.js'; import 'chai';`,
    },
    { name: 'tests may use the bed', file: 'kube/a.test.ts', text: `import '../bed/bed.js';` },
    { name: 'nothing imports a test', file: 'e2e/a.ts', text: `import './b.e2e.js';`, expect: 'which is a test' },
    { name: 'tests import no test', file: 'kube/a.test.ts', text: `import './b.test.js';`, expect: 'which is a test' },
    { name: 'the bed imports no story', file: 'bed/a.ts', text: `import '../e2e/x.js';`, expect: 'only e2e/ may' },
    { name: 'tests import no story', file: 'kube/a.test.ts', text: `import '../e2e/x.js';`, expect: 'only e2e/ may' },
    { name: 'test/ imports no measurement', file: 'test/a.ts', text: `import '../bench/x.js';`, expect: 'only bench/' },
    { name: 'stories do not measure', file: 'e2e/a.e2e.ts', text: `import '../bench/x.js';`, expect: 'only bench/' },
    {
      name: 'test support of a folder serves its tests',
      file: 'ipam/pools/a.test.ts',
      text: `import '../testing/x.js';`,
    },
    {
      name: 'test support of a folder may be used above all folders',
      file: 'e2e/cli/a.e2e.ts',
      text: `import '../../cli/testing/x.js';`,
    },
    {
      name: 'test support of a folder does not serve others',
      file: 'cli/who/a.test.ts',
      text: `import '../../ipam/testing/x.js';`,
      expect: 'which is test support of ipam/ alone: move it to a folder around both, or to test/',
    },
    {
      name: 'the bed uses no test support of a folder',
      file: 'bed/a.ts',
      text: `import '../ipam/testing/x.js';`,
      expect: 'test support of ipam/ alone',
    },
    {
      name: 'test support of kube serves all tests',
      file: 'cli/who/a.test.ts',
      text: `import '../../kube/testing/x.js';`,
    },
    {
      name: 'sources use no test support of kube',
      file: 'cli/who/a.ts',
      text: `import '../../kube/testing/x.js';`,
      expect: 'which is test code',
    },
    { name: 'sources import no tests', file: 'kube/a.ts', text: `import './b.test.js';`, expect: 'test code' },
    { name: 'sources import no test bed', file: 'kube/a.ts', text: `import '../bed/bed.js';`, expect: 'test code' },
    { name: 'a file outside of all folders has no layer', file: 'a.ts', text: `import './b.js';`, expect: 'no layer' },
  ];
  for (const { name, file, text, expect: complaint } of cases) {
    it(`${name}: ${file}`, () => {
      const [found] = importsOf(file, text).map(violationOf);
      if (complaint === undefined) expect(found).to.equal(undefined);
      else expect(found).to.include(complaint);
    });
  }

  it('tell test code from shipped code', () => {
    expect(
      ['test/a.ts', 'bed/a.ts', 'e2e/a.ts', 'bench/a.ts', 'kube/a.test.ts', 'kube/testing/a.ts', 'kube/tests.ts'].map(
        isTestCode,
      ),
    ).to.deep.equal([true, true, true, true, true, true, false]);
  });
});
