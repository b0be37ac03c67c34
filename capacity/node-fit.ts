import { matchesLabels } from '../addressing/pool/pool-nodes.js';
import type {
  SchedulingConstraints,
  NodeSelectorTerm,
  NodeSelectorRequirement,
  Toleration,
} from './scheduling-constraints.js';

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
