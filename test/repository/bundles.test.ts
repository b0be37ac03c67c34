import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { type BuildOptions, type Metafile, build } from 'esbuild';
import { messageOf } from '../../kube/errors.js';
import { readCommandLine } from '../../process/command-line.js';
import { ROOT } from '../source-files.js';

/** Packages that only some starts need, or none. Loading them takes as long as a tenth of the start of a process, each. */
const LATER = ['@kubernetes/client-node', 'mime-db', 'node-forge', 'qs', 'send', 'serve-static', 'yaml'];

// JavaScript without types, because Node.js runs it as it is
const load = (name: string) => import(pathToFileURL(join(ROOT, 'build', name)).href) as Promise<unknown>;
const { BUNDLES_OF_PROCESSES } = (await load('bundle-options.js')) as { BUNDLES_OF_PROCESSES: readonly BuildOptions[] };
const { PARTS } = (await load('parts.js')) as { PARTS: Readonly<Record<string, readonly string[]>> };

describe('the bundles', function () {
  this.timeout(60_000);
  let outputs: Metafile['outputs'];
  let warnings: string[];

  before(async () => {
    const write = { write: false, absWorkingDir: ROOT, metafile: true, logLevel: 'silent' } as const;
    const built = await Promise.all(BUNDLES_OF_PROCESSES.map((options) => build({ ...options, ...write })));
    outputs = Object.assign({}, ...built.map(({ metafile }) => metafile.outputs)) as Metafile['outputs'];
    warnings = built.flatMap((one) => one.warnings.map(({ text, location }) => `${location?.file}: ${text}`));
  });

  const sourcesOf = (name: string) => Object.keys(outputs[`dist/${name}.cjs`]?.inputs ?? {});

  const importedPaths = () =>
    Object.keys(PARTS).flatMap((name) => outputs[`dist/${name}.cjs`]!.imports.map(({ path }) => path));

  it('are built without warnings, so they use nothing that CommonJS lacks, such as import.meta.url', () => {
    expect(warnings).to.deep.equal([]);
  });

  it('are one for each process of the command line', () => {
    let processes: string[] = [];
    try {
      readCommandLine([], {});
    } catch (error) {
      processes = messageOf(error)
        .replace(/.*processes: /, '')
        .split(', ');
    }
    expect(processes).to.have.members(Object.keys(PARTS));
  });

  for (const [name, parts] of Object.entries(PARTS)) {
    it(`have all that holdfast ${name} loads in one file, without packages that only some starts need`, () => {
      const sources = sourcesOf(name);
      expect(sources).to.include.members(parts.map((part) => `${part}.ts`));
      const packages = new Set(sources.map((source) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1]));
      expect(LATER.filter((each) => packages.has(each))).to.deep.equal([]);
    });
  }

  it('have the packages that only some starts need in files of their own', () => {
    for (const [name, path] of [
      ['kubeconfig', '@kubernetes/client-node/dist/config.js'],
      ['node-forge', 'node-forge/lib/index.js'],
      ['yaml', 'yaml/dist/index.js'],
    ] as const)
      expect(sourcesOf(name)).to.include(`node_modules/${path}`);
    expect(new Set(importedPaths().filter((path) => path.endsWith('.cjs')))).to.deep.equal(
      new Set(['./kubeconfig.cjs', './node-forge.cjs', './yaml.cjs']),
    );
  });

  it('leave out no module of holdfast.ts that all processes need', () => {
    const leftOut = importedPaths().filter((path) => /^\.\/.*\.js$/.test(path));
    const parts = new Set(Object.values(PARTS).flat());
    expect(leftOut).to.not.be.empty;
    expect(leftOut.filter((path) => !parts.has(path.slice(2, -3)))).to.deep.equal([]);
  });
});
