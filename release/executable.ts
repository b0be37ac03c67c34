import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ensureModule } from '../bed/build/binaries.js';
import { nodeFolder, nodePackages } from '../test/image/node.js';
import type { PluginPlatform } from './platforms.js';

const SIGN_DARWIN = join(import.meta.dirname, 'sign-darwin');
const NODE_OF_THIS_MACHINE = `${process.platform}-${process.arch}`;

/**
 * Writes an executable that contains Node.js and a bundle: https://nodejs.org/api/single-executable-applications.html.
 * The same inputs give the same bytes on each machine.
 * @param bundle a CommonJS file
 */
export async function buildExecutable(bundle: string, { os, node }: PluginPlatform, target: string): Promise<void> {
  const folder = await mkdtemp(`${target}-`);
  const config = join(folder, 'sea.json');
  await writeFile(
    config,
    JSON.stringify({
      // the executable contains this path as it is written here
      main: basename(bundle),
      executable: await nodeProgram(node),
      output: target,
      disableExperimentalSEAWarning: true,
      // The code cache would work only on the platform that builds, and saves 30 ms of 140 ms.
      useCodeCache: false,
      // NODE_OPTIONS are for other programs of the user.
      execArgvExtension: 'none',
    }),
  );
  execFileSync(await nodeProgram(NODE_OF_THIS_MACHINE), ['--build-sea', config], {
    cwd: dirname(bundle),
    stdio: 'pipe',
  });
  await rm(folder, { recursive: true });
  if (os === 'darwin') {
    const tools = await ensureModule(SIGN_DARWIN, (text) => console.log(text));
    execFileSync(join(tools, 'sign-darwin'), [target, 'kubectl-holdfast'], { stdio: 'pipe' });
  }
}

async function nodeProgram(platform: string): Promise<string> {
  const binary = (await nodePackages()).get(platform)?.binary ?? 'bin/node';
  return join(await nodeFolder(platform), binary);
}

/** @returns the path of Node.js' own licence with those of the libraries in it, which are the same for all platforms */
export async function nodeLicence(): Promise<string> {
  return join(await nodeFolder(NODE_OF_THIS_MACHINE), 'LICENSE');
}

/** Returns an SBOM (CycloneDX) with the Node.js of each platform added. */
export async function withNode(sbom: string, platforms: readonly PluginPlatform[]): Promise<string> {
  const bom = JSON.parse(await readFile(sbom, 'utf8')) as {
    readonly metadata: { readonly component: { readonly 'bom-ref': string } };
    readonly components: object[];
    readonly dependencies: { readonly ref: string; readonly dependsOn?: string[] }[];
  };
  const packages = await nodePackages();
  const root = bom.dependencies.find(({ ref }) => ref === bom.metadata.component['bom-ref']);
  for (const { node } of platforms) {
    const { name, version, integrity } = packages.get(node)!;
    const purl = `pkg:npm/${name}@${version}`;
    const hash = { alg: 'SHA-512', content: Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex') };
    bom.components.push({
      type: 'library',
      name,
      version,
      'bom-ref': purl,
      description: `Node.js for ${node}, in the kubectl plugin`,
      scope: 'required',
      licenses: [{ license: { id: 'MIT', acknowledgement: 'declared' } }],
      purl,
      externalReferences: [
        { type: 'distribution', url: `https://registry.npmjs.org/${name}/-/${name}-${version}.tgz`, hashes: [hash] },
      ],
    });
    bom.dependencies.push({ ref: purl });
    root?.dependsOn?.push(purl);
  }
  return `${JSON.stringify(bom, undefined, 2)}\n`;
}
