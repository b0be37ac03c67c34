import type { Manifest } from '../../bed/control-plane/objects.js';

/** What Helm users expect on each object, and kustomize does not write. */
const HELM_LABELS = [
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/instance',
  'app.kubernetes.io/version',
  'helm.sh/chart',
];
/** Their order has no meaning, and kustomize puts items of a patch first. */
const UNORDERED = ['env', 'volumes', 'volumeMounts', 'webhooks'];

/** An object without what only Helm or only kustomize writes, and without the registry that only Helm needs. */
export function comparable(object: Manifest): unknown {
  const labels = Object.entries(object.metadata.labels ?? {}).filter(([label]) => !HELM_LABELS.includes(label));
  const withoutRegistry = JSON.parse(
    JSON.stringify(object)
      .replaceAll('"registry.example/holdfast"', '""')
      .replaceAll('"registry.example/holdfast:', '"holdfast:'),
  ) as Manifest;
  return normalize({
    ...withoutRegistry,
    metadata: { ...withoutRegistry.metadata, labels: Object.fromEntries(labels) },
  });
}

function normalize(value: unknown, field = ''): unknown {
  // kustomize adds empty lines to folded text
  if (typeof value === 'string') return value.replace(/\n\s*\n/g, '\n');
  if (Array.isArray(value)) {
    const items = value.map((item) => normalize(item));
    return UNORDERED.includes(field) ? items.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)) : items;
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, normalize(item, key)]),
  );
}
