// Writes what the bundles and the Go programs contain of others: an SBOM (CycloneDX), and the texts of their licences.
import { Buffer } from 'node:buffer';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import satisfies from 'spdx-satisfies';

/** Licences that a binary distribution under Apache-2.0 may include, if it has their texts. */
export const ALLOWED = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'ISC', 'MIT'];

const run = promisify(execFile);
const GO_PROGRAMS = ['guest/packets', 'cni/plugin'].map((folder) => join(import.meta.dirname, '..', folder));

/**
 * Writes `sbom.cdx.json` and `THIRD-PARTY-LICENSES.txt` into a folder.
 * @param metafile of esbuild, for all bundles
 * @throws {Error} naming each package whose licence has no text or is not allowed
 */
export async function writeThirdParties(folder, metafile) {
  const bom = await bomOf(metafile);
  const lock = JSON.parse(await readFile('package-lock.json', 'utf8'));
  for (const component of bom.components) addChecksum(component, lock);
  const go = [await goLibrary(), ...(await goModules())];
  bom.components.push(...go);
  const refs = go.map((component) => component['bom-ref']);
  bom.dependencies.push(...refs.map((ref) => ({ ref })));
  bom.dependencies.find(({ ref }) => ref === bom.metadata.component['bom-ref']).dependsOn.push(...refs);

  const notices = noticesOf(bom.components);
  for (const component of bom.components) delete component.evidence;
  await writeFile(join(folder, 'THIRD-PARTY-LICENSES.txt'), notices);
  await writeFile(join(folder, 'sbom.cdx.json'), `${JSON.stringify(bom, null, 2)}\n`);
}

/** The packages of which esbuild took at least one file, with the files of their licences as evidence. */
async function bomOf(metafile) {
  const scratch = await mkdtemp(join(tmpdir(), 'holdfast-sbom-'));
  try {
    const [input, output] = [join(scratch, 'meta.json'), join(scratch, 'bom.json')];
    await writeFile(input, JSON.stringify(metafile));
    const cli = join('node_modules', '@cyclonedx', 'cyclonedx-esbuild', 'bin', 'cyclonedx-esbuild-cli.js');
    // a test validates the finished file
    const options = ['--gather-license-texts', '--output-reproducible', '--no-validate', '-o', output];
    await run(process.execPath, [cli, ...options, input]);
    return JSON.parse(await readFile(output, 'utf8'));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Adds the checksum that npm has verified. */
function addChecksum(component, lock) {
  const name = nameOf(component);
  const isIt = ([path, entry]) => path.endsWith(`node_modules/${name}`) && entry.version === component.version;
  const [, entry] = Object.entries(lock.packages).find(isIt) ?? [];
  if (entry?.integrity === undefined) throw new Error(`${name} ${component.version} is not in package-lock.json`);
  const content = Buffer.from(entry.integrity.replace('sha512-', ''), 'base64').toString('hex');
  const url = `https://registry.npmjs.org/${name}/-/${component.name}-${component.version}.tgz`;
  const distribution = { type: 'distribution', url, hashes: [{ alg: 'SHA-512', content }] };
  component.externalReferences = [...(component.externalReferences ?? []), distribution];
}

/** The standard library of Go. */
async function goLibrary() {
  const { stdout } = await run('go', ['env', 'GOVERSION', 'GOROOT']);
  const [version, root] = stdout.trim().split('\n');
  const text = await readFile(join(root, 'LICENSE'), 'utf8');
  const library = { name: 'std', version: version.replace('go', ''), text };
  return { ...goComponent(library), description: "Go's standard library, in the CNI plugin and holdfast-packets" };
}

/** The modules of which the Go programs have at least one package. The programs may have two versions of one. */
async function goModules() {
  const listed = await Promise.all(GO_PROGRAMS.map(modulesOf));
  const lines = [...new Set(listed.flat())].filter((line) => line !== '').sort();
  return Promise.all(
    lines.map(async (line) => {
      const [name, version, folder] = line.split(' ');
      const file = (await readdir(folder)).find((each) => /^licen[cs]e(\.\w+)?$/i.test(each));
      const text = file === undefined ? '' : await readFile(join(folder, file), 'utf8');
      return goComponent({ name, version, text });
    }),
  );
}

/** Returns `path version folder` of each module of a program. */
async function modulesOf(program) {
  const template = '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}';
  const options = { cwd: program, env: { ...process.env, CGO_ENABLED: '0', GOOS: 'linux', GOWORK: 'off' } };
  const { stdout } = await run('go', ['list', '-mod=readonly', '-deps', '-f', template, '.'], options);
  return stdout.split('\n');
}

function goComponent({ name, version, text }) {
  const purl = `pkg:golang/${name}@${version}`;
  const content = Buffer.from(text).toString('base64');
  return {
    type: 'library',
    name,
    version,
    'bom-ref': purl,
    scope: 'required',
    licenses: [{ license: { ...licenceOf(text), acknowledgement: 'declared' } }],
    purl,
    evidence: { licenses: [{ license: { name: 'file: LICENSE', text: { content, encoding: 'base64' } } }] },
  };
}

/** Go modules declare no licence: it is recognized by its text. */
export function licenceOf(text) {
  if (text.includes('Permission is hereby granted, free of charge')) return { id: 'MIT' };
  if (/Apache License\s+Version 2\.0/.test(text)) return { id: 'Apache-2.0' };
  const isBSD = text.includes('Redistribution and use in source and binary forms');
  if (isBSD && /endorse\s+or\s+promote/.test(text)) return { id: 'BSD-3-Clause' };
  return { name: 'unknown' };
}

/** Returns the licence texts of components. @throws {Error} naming each that may not be distributed */
export function noticesOf(components) {
  const problems = [];
  const notices = components.map((component) => {
    const title = `${nameOf(component)} ${component.version}`;
    const declared = (component.licenses ?? []).map(
      (entry) => entry.expression ?? entry.license.id ?? entry.license.name,
    );
    if (declared.length === 0) problems.push(`${title} declares no licence`);
    for (const licence of declared) if (!isAllowed(licence)) problems.push(`${title} has the licence ${licence}`);
    const files = component.evidence?.licenses ?? [];
    const texts = files.map(({ license }) =>
      Buffer.from(license.text.content, license.text.encoding).toString().trim(),
    );
    if (texts.join('') === '') problems.push(`${title} has no licence text`);
    return `${title} (${declared.join(', ')})\n\n${texts.join('\n\n')}\n`;
  });
  if (problems.length > 0) {
    throw new Error(`third-party licences (allowed: ${ALLOWED.join(', ')}):\n${problems.join('\n')}`);
  }
  return notices.join(`\n${'-'.repeat(80)}\n\n`);
}

function isAllowed(licence) {
  try {
    return satisfies(licence, ALLOWED);
  } catch {
    return false; // not an SPDX expression
  }
}

function nameOf({ group, name }) {
  return group === undefined ? name : `${group}/${name}`;
}
