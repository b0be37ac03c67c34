import { matchesLabels } from '../ipam/core/pool-nodes.js';
import type {
  SchedulingConstraints,
  NodeSelectorTerm,
  NodeSelectorRequirement,
  Toleration,
} from './scheduling-constraints.js';

/** What of a node decides who may run on it. */
export interface SchedulingTraits {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly unschedulable: boolean;
  /** Those that keep pods away: NoSchedule and NoExecute. */
  readonly taints: readonly Taint[];
}

export interface Taint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

/** As the scheduler sees a cordoned node, whether the taint is there yet or not. */
const UNSCHEDULABLE: Taint = { key: 'node.kubernetes.io/unschedulable', value: '', effect: 'NoSchedule' };

/**
 * Whether a pod may run on a node as far as its node selector, its required node affinity and its tolerations go: where it can be
 * scheduled at all, whatever else the scheduler looks at.
 */
export function canRun(constraints: SchedulingConstraints, node: SchedulingTraits): boolean {
  return (
    matchesLabels(node.labels, constraints.nodeSelector) &&
    (constraints.nodeSelectorTerms === undefined ||
      constraints.nodeSelectorTerms.some((term) => matchesTerm(term, node))) &&
    taintsOf(node).every((taint) => constraints.tolerations.some((toleration) => tolerates(toleration, taint)))
  );
}

/** Pods that ask for nothing special may run there. */
export function isUntainted(node: SchedulingTraits): boolean {
  return taintsOf(node).length === 0;
}

function taintsOf({ unschedulable, taints }: SchedulingTraits): readonly Taint[] {
  return unschedulable ? [...taints, UNSCHEDULABLE] : taints;
}

/** A term that says nothing matches nothing. */
function matchesTerm({ labels, fields }: NodeSelectorTerm, node: SchedulingTraits): boolean {
  if (labels.length === 0 && fields.length === 0) return false;
  return (
    labels.every((requirement) => meetsRequirement(node.labels[requirement.key], requirement)) &&
    // a node has one field that can be asked for
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

/** Without a key it is for all taints, without an effect for all effects. */
function tolerates({ key, operator, value, effect }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false;
  if (key === '') return operator === 'Exists';
  return key === taint.key && (operator === 'Exists' || value === taint.value);
}
