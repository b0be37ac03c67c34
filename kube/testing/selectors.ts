import type { KubeObject } from '../../api/meta.js';
import { canSelectBy } from './object-fields.js';
import { BAD_REQUEST, type KindName, refusal } from './refusals.js';

/** Selectors of a list or a watch, as in its query. */
export interface Selectors {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** Returns what tells whether an object is selected. @throws {StatusError} 400 if its kind cannot be selected by a field */
export function selectorOf(kind: KindName, given: Selectors): (object: KubeObject) => boolean {
  const { namespace, labelSelector = '', fieldSelector = '' } = given;
  // commas also separate the values of a set: `a in (b,c),d`
  const labels = termsOf(labelSelector, /,(?![^(]*\))/).map(readLabelTerm);
  const fields = termsOf(fieldSelector, ',').map((term) => readFieldTerm(kind, term));
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    labels.every((fits) => fits(object.metadata.labels ?? {})) &&
    fields.every((fits) => fits(object));
}

function termsOf(selector: string, separator: RegExp | string): string[] {
  return selector
    .split(separator)
    .map((term) => term.trim())
    .filter((term) => term !== '');
}

function readLabelTerm(term: string): (labels: Readonly<Record<string, string>>) => boolean {
  const [, setKey, operator, set = ''] = /^(\S+)\s+(in|notin)\s+\((.*)\)$/.exec(term) ?? [];
  if (setKey !== undefined) {
    const values = set.split(',').map((value) => value.trim());
    return (labels) => (setKey in labels && values.includes(labels[setKey] ?? '')) === (operator === 'in');
  }
  const [, key, sign, value] = /^([^!=\s]+)\s*(!=|==?)\s*(.*)$/.exec(term) ?? [];
  if (key !== undefined) return (labels) => (labels[key] === value) === (sign !== '!=');
  return term.startsWith('!') ? (labels) => !(term.slice(1) in labels) : (labels) => term in labels;
}

/** A field that is absent is equal to the empty text. */
function readFieldTerm(kind: KindName, term: string): (object: KubeObject) => boolean {
  const [, path = '', sign, value] = /^(.+?)(!=|==?)(.*)$/.exec(term) ?? [];
  if (path === '' || !canSelectBy(kind, path))
    throw refusal(kind, '', BAD_REQUEST, `field label not supported: ${path}`);
  const keys = path.split('.');
  return (object) => {
    const found = keys.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], object);
    return (((found as string | undefined) ?? '') === value) === (sign !== '!=');
  };
}
