import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { ROOT } from '../source-files.js';
import { type Dockerfile, PLATFORMS, readDockerfile } from './dockerfile.js';
import { readFinalStage } from './final-stage.js';
import { lineOfImage, nodeOfImage } from './node.js';

const BUILD_ARGS = { VERSION: '1.2.3', REVISION: '0123abc', CREATED: '2026-11-22T00:00:00Z' };

describe('The Dockerfile', function () {
  this.timeout(30_000);
  let text: string;
  let dockerfile: Dockerfile;

  before(async function () {
    this.timeout(10 * 60_000); // the first run compiles BuildKit's frontend
    text = await readFile(join(ROOT, 'Dockerfile'), 'utf8');
    dockerfile = await readDockerfile(join(ROOT, 'Dockerfile'), BUILD_ARGS);
  });

  /** What BuildKit's linter finds in the Dockerfile after a change. */
  async function rulesBrokenBy(change: (text: string) => string): Promise<string[]> {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-dockerfile-'));
    try {
      await writeFile(join(folder, 'Dockerfile'), change(text));
      await copyFile(join(ROOT, '.dockerignore'), join(folder, '.dockerignore'));
      return (await readDockerfile(join(folder, 'Dockerfile'))).warnings.map(({ rule }) => rule);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  it("breaks no rule of BuildKit's linter", () => {
    expect(dockerfile.warnings).to.deep.equal([]);
  });

  it("is checked by BuildKit's linter", async () => {
    const broken = await rulesBrokenBy((lines) =>
      lines.replace('AS build', 'as build').replace('$BUILDPLATFORM', '$NOWHERE'),
    );
    expect(broken).to.include.members(['FromAsCasing', 'UndefinedArgInFrom']);
  });

  /** The modules of Node.js whose compiled code V8 rejects. */
  async function modulesCompiledWith(options: readonly string[]): Promise<unknown> {
    const script = `require('https');
      const { internalBinding } = require('internal/test/binding');
      console.log(JSON.stringify([...internalBinding('builtins').getCacheUsage().compiledWithoutCache]));`;
    const args = [...options, '--no-warnings', '--expose-internals', '--eval', script];
    return JSON.parse((await promisify(execFile)(await nodeOfImage(), args)).stdout);
  }

  for (const platform of PLATFORMS) {
    it(`becomes an image for ${platform} that does not run as root and names its version`, () => {
      const { User, Entrypoint, Cmd, WorkingDir, Labels } = dockerfile.images[platform]!;
      expect(User).to.equal('1000:1000');
      expect(Entrypoint[0]).to.equal('/nodejs/bin/node');
      expect(Entrypoint.at(-1)).to.equal('/opt/holdfast/dist/holdfast.js');
      expect({ Cmd, WorkingDir }).to.deep.equal({ Cmd: ['--help'], WorkingDir: '/opt/holdfast' });
      const prefix = 'org.opencontainers.image';
      expect(Labels).to.include({
        [`${prefix}.title`]: 'Holdfast',
        [`${prefix}.licenses`]: 'Apache-2.0',
        [`${prefix}.version`]: BUILD_ARGS.VERSION,
        [`${prefix}.revision`]: BUILD_ARGS.REVISION,
        [`${prefix}.created`]: BUILD_ARGS.CREATED,
      });
      expect(Labels[`${prefix}.base.name`]).to.match(/distroless/);
    });
  }

  it('is read by the test bed as BuildKit reads it', async () => {
    const { stage, config } = await readFinalStage();
    expect(stage.steps).to.deep.equal(dockerfile.stages.at(-1)!.steps);
    for (const platform of PLATFORMS) expect(dockerfile.images[platform]).to.deep.include(config);
  });

  it('pins each base image by a tag, with the Node.js that tests run', async () => {
    const images = [...text.matchAll(/^ARG (\w+)_IMAGE=(\S+)$/gm)].map(([, name, image]) => [name, image] as const);
    expect(images.map(([name]) => name)).to.deep.equal(['NODE', 'GO', 'RUNTIME']);
    for (const [, image] of images) expect(image).to.match(/:(?!latest)[\w.-]+$/);
    const line = String(await lineOfImage());
    expect(new Map(images).get('NODE')).to.include(`/node:${line}-`);
    expect(new Map(images).get('RUNTIME')).to.include(`/nodejs${line}-`);
  });

  it('runs Node.js with options that do not make it compile its own modules at each start', async () => {
    const { config } = await readFinalStage();
    const options = config.Entrypoint.filter((argument) => argument.startsWith('--'));
    expect(await modulesCompiledWith(options)).to.deep.equal([]);
    expect(await modulesCompiledWith(['--heap-growing-percent=20'])).to.include('https');
  });

  it('names stages or its arguments as bases, never an image', () => {
    for (const { base } of dockerfile.stages) expect(base).to.match(/^\$\{\w+_IMAGE\}$/);
  });

  it('gets a build context of sources only', () => {
    expect(dockerfile.context).to.include.members(['holdfast.ts', 'cni/plugin/main.go', 'build/third-parties.js']);
    const others = /(^|\/)(node_modules|dist|testing|\.git|\.bed)\/|\.test\.ts$|^(e2e|test|docs|manifests)\//;
    expect(dockerfile.context.filter((path) => others.test(path))).to.deep.equal([]);
  });
});
