/**
 * Generates TypeScript from the CRDs, as files because editors and the compiler read no YAML. `npm run reference` writes them, and a test
 * compares them.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type FormatConfig, format } from 'oxfmt';
import { ADDRESS_POOLS } from '../../kube/resources.js';
import { type ShippedKind, type StructuralSchema, readKinds } from '../../manifests/testing/structural-schema.js';
import { ROOT } from '../source-files.js';

/** Types that code names. All other objects are written in the type of the field. */
const NAMES: Readonly<Record<string, string>> = {
  'AddressPool.spec': 'AddressPoolSpec',
  'AddressPool.spec.subnets': 'PoolSubnet',
  'AddressPool.spec.guest': 'GuestOptions',
  'AddressPool.spec.guest.dhcp': 'GuestDhcpOptions',
  'AddressPool.spec.guest.dhcp.options': 'GuestDhcpOption',
  'AddressPool.spec.guest.dhcp.optionsV6': 'GuestDhcpOptionV6',
  'AddressPool.spec.guest.dhcp.boot': 'GuestBootFile',
  'AddressPool.spec.guest.routes': 'GuestRoute',
  'AddressPool.status': 'AddressPoolStatus',
  'AddressPool.status.blocks': 'PoolBlocks',
  'AddressLease.spec': 'AddressLeaseSpec',
  'AddressLease.spec.owner': 'LeaseOwner',
  'AddressLease.spec.quarantine': 'LeaseQuarantine',
  'AddressLease.spec.networkData': 'LeaseNetworkData',
  'AddressBlock.spec': 'AddressBlockSpec',
  'AddressBlock.status': 'AddressBlockStatus',
};
const COLUMNS = 115;

/** Returns the text of each generated file by its path. */
export async function generatedFromCrds(): Promise<Record<string, string>> {
  const kinds = await readKinds();
  const own = kinds.filter(({ group }) => group === ADDRESS_POOLS.group);
  const [claim] = kinds.filter(({ group }) => group !== ADDRESS_POOLS.group);
  const types = own.map(async (kind) => [fileOf(kind), await formatted(typesOf(kind))]);
  return {
    ...(Object.fromEntries(await Promise.all(types)) as Record<string, string>),
    'cli/doctor/crd-fields.ts': await formatted([
      "/** The fields of Holdfast's kinds that this version uses: the names of those in each object below `spec` and `status`. */",
      `export const CRD_FIELDS: Readonly<Record<string, Readonly<Record<string, string>>>> = ${JSON.stringify(fieldsOf(own))};\n`,
      '/** The kind of claims, which Holdfast ships for clusters that lack it. */',
      `export const CLAIM_CRD = '${claim!.name}';`,
    ]),
  };
}

function fileOf({ kind }: ShippedKind): string {
  return `api/${kind.replaceAll(/\B[A-Z]/g, '-$&').toLowerCase()}-schema.ts`;
}

async function formatted(lines: readonly string[]): Promise<string> {
  const text = ['// `npm run reference` writes this file from manifests/crds.', ...lines].join('\n');
  const config = JSON.parse(await readFile(join(ROOT, '.oxfmtrc.json'), 'utf8')) as FormatConfig;
  const { code, errors } = await format('generated.ts', text, config);
  if (errors.length > 0) throw new SyntaxError(errors.map(({ message }) => message).join('\n'));
  return code;
}

/** Returns the interfaces of a kind, and of the objects in it that have a name. */
export function typesOf({ kind, schema }: Pick<ShippedKind, 'kind' | 'schema'>): string[] {
  const interfaces = interfacesOf(kind, schema);
  const imported = interfaces.some((text) => text.includes('Condition[]')) ? 'Condition, KubeObject' : 'KubeObject';
  return [`import type { ${imported} } from './meta.js';`, ...interfaces].map((text) => `${text}\n`);
}

function fieldsOf(kinds: readonly ShippedKind[]): Record<string, Record<string, string>> {
  const objectsIn = (schema: StructuralSchema) =>
    Object.fromEntries(['spec', 'status'].flatMap((part) => fieldNamesOf(schema, part)));
  return Object.fromEntries(kinds.map(({ name, schema }) => [name, objectsIn(schema)]));
}

function interfacesOf(kind: string, { description, required = [], properties = {} }: StructuralSchema): string[] {
  const found = new Map<string, string>([[kind, '']]);
  const own = Object.fromEntries(Object.entries(properties).filter(([name]) => ['spec', 'status'].includes(name)));
  const body = bodyOf({ required, properties: own }, kind, found);
  found.set(kind, `${comment(description)}export interface ${kind} extends KubeObject ${body}`);
  return [...found.values()];
}

/** @param found receives the named types below */
function bodyOf(
  { required = [], properties = {} }: StructuralSchema,
  path: string,
  found: Map<string, string>,
): string {
  const fields = Object.entries(properties).map(([name, field]) => {
    const type = name === 'conditions' ? 'Condition[]' : typeOf(field, `${path}.${name}`, found);
    const isNamed = NAMES[`${path}.${name}`] !== undefined && field.items === undefined;
    return `${isNamed ? '' : comment(textOf(field))}${name}${required.includes(name) ? '' : '?'}: ${type};`;
  });
  return ['{', ...fields, '}'].join('\n');
}

function typeOf(schema: StructuralSchema, path: string, found: Map<string, string>): string {
  if (schema.enum !== undefined) return `(${schema.enum.map((value) => JSON.stringify(value)).join(' | ')})`;
  switch (schema.type) {
    case 'string':
    case 'boolean':
      return schema.type;
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return `${typeOf(schema.items ?? {}, path, found)}[]`;
    case 'object':
      return typeOfObject(schema, path, found);
    default:
      throw new TypeError(`${path} has the type ${schema.type ?? 'undefined'}, for which there is no TypeScript`);
  }
}

function typeOfObject(schema: StructuralSchema, path: string, found: Map<string, string>): string {
  const { additionalProperties: values } = schema;
  if (values !== undefined) return `Record<string, ${typeOf(values, path, found)}>`;
  const name = NAMES[path];
  if (name === undefined) return bodyOf(schema, path, found);
  found.set(name, '');
  found.set(name, `${comment(schema.description)}export interface ${name} ${bodyOf(schema, path, found)}`);
  return name;
}

/** The description, and what else the schema says to people. */
function textOf({
  description = '',
  format: kind,
  minimum,
  maximum,
  maxItems,
  maxProperties,
}: StructuralSchema): string {
  const isSmall = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
  const most = maxItems ?? maxProperties;
  const notes = [
    isSmall && `${String(minimum)} to ${String(maximum)}`,
    most !== undefined && `At most ${String(most)}`,
    kind === 'date-time' && 'RFC 3339',
  ].filter((note) => note !== false);
  return [description, ...notes.filter((note) => !description.includes(note)).map((note) => `${note}.`)].join(' ');
}

function comment(text = ''): string {
  const lines = ['/**'];
  for (const word of text.replaceAll('*/', '* /').split(/\s+/).filter(Boolean)) {
    if (lines.at(-1)!.length + word.length > COLUMNS) lines.push(' *');
    lines.push(`${lines.pop()!} ${word}`);
  }
  if (text.trim() === '') return '';
  if (lines.length === 1) return `${lines[0]!} */\n`;
  return `${lines.join('\n').replace('/**', '/**\n *')}\n */\n`;
}

/** The fields of a condition are the same everywhere, so they are left out. */
function fieldNamesOf(schema: StructuralSchema, name: string, path = name): [string, string][] {
  const field = schema.properties?.[name];
  const object = field?.items ?? field;
  const names = name === 'conditions' ? [] : Object.keys(object?.properties ?? {});
  if (names.length === 0) return [];
  return [[path, names.join(' ')], ...names.flatMap((each) => fieldNamesOf(object!, each, `${path}.${each}`))];
}
