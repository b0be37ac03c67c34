import { expect } from 'chai';
import { type Metafile, build } from 'esbuild';

/** Packages that only some starts need. Loading them takes as long as a tenth of the start of a process, each. */
const LATER = ['@kubernetes/client-node/dist/config.js', 'node-forge'];
const PROCESSES = ['capacity', 'cni/agent', 'controller', 'guest', 'guest/responder-process', 'ipam', 'webhook'];

/** Returns the packages that load with the file of the bundle. */
function packagesOf(path: string, { outputs }: Metafile, seen = new Set<string>()): string[] {
  if (seen.has(path)) return [];
  seen.add(path);
  return (outputs[path]?.imports ?? [])
    .filter(({ kind }) => kind === 'import-statement')
    .flatMap(({ path: imported, external }) => (external === true ? [imported] : packagesOf(imported, { outputs, inputs: {} }, seen))); // oxfmt-ignore
}

describe('the bundles', function () {
  this.timeout(60_000);
  let metafile: Metafile;

  before(async () => {
    const entryPoints = [...PROCESSES.map((folder) => `${folder}/main.ts`), 'process/context.ts'];
    const shared = { bundle: true, splitting: true, format: 'esm', platform: 'node', packages: 'external' } as const;
    ({ metafile } = await build({ ...shared, entryPoints, outdir: 'dist', write: false, metafile: true }));
  });

  for (const entry of [...PROCESSES.map((folder) => `${folder}/main`), 'process/context']) {
    it(`load no package with ${entry}.ts that only some starts need`, () => {
      const packages = packagesOf(`dist/${entry}.js`, metafile);
      expect(packages).to.not.be.empty;
      expect(packages.filter((name) => LATER.includes(name))).to.deep.equal([]);
    });
  }
});
