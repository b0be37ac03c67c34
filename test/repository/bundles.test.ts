import { expect } from 'chai';
import { type BuildOptions, type Metafile, build } from 'esbuild';

/** Packages that only some starts need, or none. Loading them takes as long as a tenth of the start of a process, each. */
const LATER = ['@kubernetes/client-node', 'mime-db', 'node-forge', 'qs', 'send', 'serve-static'];
const PROCESSES = ['capacity', 'cni/agent', 'controller', 'guest', 'guest/responder-process', 'ipam', 'webhook'];
const OPTIONS = '../../build/bundle-options.js';

/** Returns the sources that load with the file of a bundle. */
function sourcesOf(path: string, outputs: Metafile['outputs'], seen = new Set<string>()): string[] {
  const output = outputs[path];
  if (output === undefined || seen.has(path)) return [];
  seen.add(path);
  const imported = output.imports.filter(({ kind }) => kind === 'import-statement');
  return [...Object.keys(output.inputs), ...imported.flatMap((each) => sourcesOf(each.path, outputs, seen))];
}

/** Returns the packages that load with the bundle of a source, and the source itself. */
function loadedWith(entry: string, { outputs }: Metafile): Set<string> {
  const [path = entry] = Object.keys(outputs).filter((each) => outputs[each]?.entryPoint === entry);
  return new Set(
    sourcesOf(path, outputs).map((source) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1] ?? source),
  );
}

describe('the bundles', function () {
  this.timeout(60_000);
  let metafile: Metafile;

  before(async () => {
    const { PROCESS_BUNDLES } = (await import(OPTIONS)) as { PROCESS_BUNDLES: BuildOptions };
    ({ metafile } = await build({ ...PROCESS_BUNDLES, write: false, metafile: true }));
  });

  for (const entry of [...PROCESSES.map((folder) => `${folder}/main.ts`), 'process/context.ts']) {
    it(`load no package with ${entry} that only some starts need`, () => {
      const loaded = loadedWith(entry, metafile);
      expect([...loaded]).to.include(entry);
      expect(LATER.filter((name) => loaded.has(name))).to.deep.equal([]);
    });
  }

  it('have the packages that only some starts need in other files', () => {
    const packages = Object.keys(metafile.inputs).join('\n');
    for (const name of ['@kubernetes/client-node', 'node-forge']) expect(packages).to.include(`node_modules/${name}/`);
  });
});
