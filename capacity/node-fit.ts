import { matchesLabels } from '../addressing/pool/pool.js';
import { asList, asRecord, asString, isRecord } from '../api/json.js';
import { MAX_POD_CONSTRAINTS } from '../api/limits.js';

/** The fields of a node that decide which pods can run on it. */
export interface SchedulingTraits {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly unschedulable: boolean;
  /** Taints with the effects NoSchedule and NoExecute. */
  readonly taints: readonly Taint[];
}

export interface Taint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

/** The taint of a cordoned node. The scheduler assumes it even before it is set. */
const UNSCHEDULABLE: Taint = { key: 'node.kubernetes.io/unschedulable', value: '', effect: 'NoSchedule' };

/**
 * Whether the node selector, the required node affinity and the tolerations of a pod allow it to run on a node. The scheduler checks more than
 * that.
 */
export function canRun(constraints: SchedulingConstraints, node: SchedulingTraits): boolean {
  return (
    matchesLabels(node.labels, constraints.nodeSelector) &&
    (constraints.nodeSelectorTerms === undefined ||
      constraints.nodeSelectorTerms.some((term) => matchesTerm(term, node))) &&
    taintsOf(node).every((taint) => constraints.tolerations.some((toleration) => tolerates(toleration, taint)))
  );
}

/** Whether pods without tolerations can run on the node. */
export function isUntainted(node: SchedulingTraits): boolean {
  return taintsOf(node).length === 0;
}

function taintsOf({ unschedulable, taints }: SchedulingTraits): readonly Taint[] {
  return unschedulable ? [...taints, UNSCHEDULABLE] : taints;
}

/** An empty term matches no node. */
function matchesTerm({ labels, fields }: NodeSelectorTerm, node: SchedulingTraits): boolean {
  if (labels.length === 0 && fields.length === 0) return false;
  return (
    labels.every((requirement) => meetsRequirement(node.labels[requirement.key], requirement)) &&
    // Kubernetes supports only this field
    fields.every((requirement) => requirement.key === 'metadata.name' && meetsRequirement(node.name, requirement))
  );
}

function meetsRequirement(value: string | undefined, { operator, values }: NodeSelectorRequirement): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return compares(value, values, (one, other) => one > other);
    case 'Lt':
      return compares(value, values, (one, other) => one < other);
    default:
      return false;
  }
}

function compares(
  value: string | undefined,
  [bound = '']: readonly string[],
  holds: (one: number, other: number) => boolean,
): boolean {
  const isNumber = (text: string) => /^-?\d+$/.test(text);
  return value !== undefined && isNumber(value) && isNumber(bound) && holds(Number(value), Number(bound));
}

/** A toleration without a key matches all taints, one without an effect matches all effects. */
function tolerates({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false;
  if (key === '') return operator === 'Exists';
  return key === taint.key && (operator === 'Exists' || value === taint.value);
}

/** The fields of a pod's spec that limit where it can run. Invalid fields are ignored. */
export interface SchedulingConstraints {
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** The terms of the required node affinity. One of them must match; absent if every node matches. */
  readonly nodeSelectorTerms?: readonly NodeSelectorTerm[];
  readonly tolerations: readonly Toleration[];
}

/** All requirements must match. */
interface NodeSelectorTerm {
  readonly labels: readonly NodeSelectorRequirement[];
  readonly fields: readonly NodeSelectorRequirement[];
}

interface NodeSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}

/** Fields are `''` if the pod does not set them. */
interface Toleration {
  readonly key: string;
  readonly operator: string;
  readonly value: string;
  readonly effect: string;
}

/** @returns undefined if the constraints are too large to compare with each node; such a pod gets no offer */
export function readSchedulingConstraints(spec: unknown): SchedulingConstraints | undefined {
  const { nodeSelector, affinity, tolerations } = asRecord(spec);
  const required = asRecord(asRecord(affinity).nodeAffinity).requiredDuringSchedulingIgnoredDuringExecution;
  const constraints: SchedulingConstraints = {
    nodeSelector: stringValuesOf(nodeSelector),
    ...(isRecord(required) && { nodeSelectorTerms: asList(required.nodeSelectorTerms).map(readTerms) }),
    tolerations: asList(tolerations).map(readToleration),
  };
  return sizeOf(constraints) > MAX_POD_CONSTRAINTS ? undefined : constraints;
}

function sizeOf({ nodeSelector, nodeSelectorTerms = [], tolerations }: SchedulingConstraints): number {
  const requirements = nodeSelectorTerms.flatMap(({ labels, fields }) => [...labels, ...fields]);
  const values = requirements.reduce((sum, requirement) => sum + requirement.values.length, 0);
  return (
    Object.keys(nodeSelector).length + nodeSelectorTerms.length + requirements.length + values + tolerations.length
  );
}

function readTerms(term: unknown): NodeSelectorTerm {
  const { matchExpressions, matchFields } = asRecord(term);
  return { labels: asList(matchExpressions).map(readRequirement), fields: asList(matchFields).map(readRequirement) };
}

function readRequirement(requirement: unknown): NodeSelectorRequirement {
  const { key, operator, values } = asRecord(requirement);
  return { key: asString(key), operator: asString(operator), values: asList(values).map(asString) };
}

function readToleration(toleration: unknown): Toleration {
  const { key, operator, value, effect } = asRecord(toleration);
  return {
    key: asString(key),
    operator: asString(operator) || 'Equal',
    value: asString(value),
    effect: asString(effect),
  };
}

function stringValuesOf(value: unknown): Record<string, string> {
  return Object.fromEntries(
    Object.entries(asRecord(value)).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
