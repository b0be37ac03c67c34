import jsonpatch, { type Operation } from 'fast-json-patch';
import { parse } from 'yaml';
import type { KubeObject } from '../../api/meta.js';
import { mergePatch } from '../../test/merge-patch.js';

/** The parts of Velero's resource modifiers that the documentation uses. */
interface Rule {
  readonly conditions: {
    /** `plural.group`. */
    readonly groupResource: string;
    readonly namespaces?: readonly string[];
    readonly resourceNameRegex?: string;
    readonly matches?: readonly { readonly path: string; readonly value?: string }[];
  };
  readonly patches?: readonly { operation: string; path: string; from?: string; value?: string }[];
  readonly mergePatches?: readonly { patchData: string }[];
}

const KEYS = {
  modifiers: ['version', 'resourceModifierRules'],
  rule: ['conditions', 'patches', 'mergePatches'],
  conditions: ['groupResource', 'namespaces', 'resourceNameRegex', 'matches'],
};

/** Velero's resource modifiers (its internal/resourcemodifiers, API version v1), which it applies to objects before it creates them. */
export class ResourceModifiers {
  readonly #rules: readonly Rule[];

  /** @param text the YAML of a ConfigMap. As by Velero, unknown keys are refused; so are those that this imitation does not know. */
  constructor(text: string) {
    const read = parse(text) as { version: string; resourceModifierRules: Rule[] };
    if (read.version !== 'v1') throw new Error(`version of resource modifiers: got ${read.version}, want v1`);
    refuseOthers(read, KEYS.modifiers);
    for (const rule of read.resourceModifierRules) {
      refuseOthers(rule, KEYS.rule);
      refuseOthers(rule.conditions, KEYS.conditions);
    }
    this.#rules = read.resourceModifierRules;
  }

  /** @returns a changed copy. All conditions see the object as it was. */
  apply<T extends KubeObject>(groupResource: string, object: T): T {
    let changed = structuredClone(object);
    for (const rule of this.#rules) if (matches(rule, groupResource, object)) changed = patched(rule, changed);
    return changed;
  }
}

function refuseOthers(given: object, known: readonly string[]): void {
  const other = Object.keys(given).find((key) => !known.includes(key));
  if (other !== undefined) throw new Error(`resource modifiers: unknown key ${other}`);
}

function matches({ conditions }: Rule, groupResource: string, object: KubeObject): boolean {
  const { namespaces = [], resourceNameRegex = '', matches: values = [] } = conditions;
  const { namespace = '', name } = object.metadata;
  return (
    conditions.groupResource === groupResource &&
    (namespaces.length === 0 || namespaces.includes(namespace)) &&
    new RegExp(resourceNameRegex).test(name) &&
    values.every(({ path, value = '' }) => jsonpatch.getValueByPointer(object, path) === valueOf(value))
  );
}

function patched<T extends KubeObject>({ patches = [], mergePatches = [] }: Rule, object: T): T {
  if (patches.length > 0) {
    const operations = patches.map(({ operation, value = '', ...rest }) => {
      return { ...rest, op: operation, value: valueOf(value) } as Operation;
    });
    return jsonpatch.applyPatch(object, operations, true).newDocument;
  }
  if (mergePatches.length === 0) throw new Error('resource modifiers: a rule without patches');
  for (const { patchData } of mergePatches) mergePatch(object, parse(patchData) as object);
  return object;
}

/** Velero writes a value into JSON with quotes, unless it is a number, a boolean, null, a list or an object. Quotes in the value make it a string. */
function valueOf(text: string): unknown {
  if (/^".*"$/s.test(text)) return text.slice(1, -1);
  const isJson = /^([{[]|(null|true|false)$)/.test(text) || (text !== '' && !Number.isNaN(Number(text)));
  return isJson ? (JSON.parse(text) as unknown) : text;
}
