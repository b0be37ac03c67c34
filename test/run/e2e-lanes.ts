/** Where stories run. */
export type Lane =
  /** Real control plane, simulated nodes: `make e2e`. */
  | 'bed'
  /** A cluster that E2E_KUBECONFIG names, such as that of bed/kind. */
  | 'cluster'
  /** Real nodes: `make e2e NODES=real`. */
  | 'nodes'
  /** Real nodes with guests: `make e2e NODES=guests`. */
  | 'guests';

/** The lanes of each folder of e2e/ that has stories. bed/kind/README.md has the same table. */
export const LANES_OF_FOLDERS: Readonly<Record<string, readonly Lane[]>> = {
  agent: ['bed', 'cluster'],
  claims: ['bed', 'cluster'],
  cli: ['bed', 'cluster'],
  'control-plane': ['bed'], // they start control planes of their own
  guest: ['bed', 'cluster'],
  ipam: ['bed', 'cluster'],
  nodes: ['nodes', 'guests'], // guests: files whose name begins with guest-
  peers: ['bed', 'cluster'],
  smoke: ['bed'],
  upgrade: ['bed'],
  wire: ['bed', 'cluster'],
};

/** The files of a lane that chooses whole folders. */
export function filesOf(lane: Lane): string {
  const folders = Object.entries(LANES_OF_FOLDERS).flatMap(([folder, lanes]) => (lanes.includes(lane) ? [folder] : []));
  return `e2e/@(${folders.join('|')})/*.e2e.ts`;
}
