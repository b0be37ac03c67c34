import type { ProcessRight } from './observed.js';

type Right = Omit<ProcessRight, 'account'>;

const right = (verb: string, resource: string, group = ''): Right => ({ verb, group, resource });
const [OWN, CLAIMS, KUBEVIRT] = ['ipam.holdfast.dev', 'k8s.cni.cncf.io', 'kubevirt.io'];
const [CONTROLLER, WEBHOOK, IPAM] = [
  [
    right('list', 'virtualmachines', KUBEVIRT),
    right('list', 'virtualmachineinstances', KUBEVIRT),
    right('update', 'virtualmachines/finalizers', KUBEVIRT),
    right('list', 'network-attachment-definitions', CLAIMS),
    right('create', 'ipamclaims', CLAIMS),
    right('patch', 'ipamclaims', CLAIMS),
    right('list', 'pods'),
  ],
  [
    right('list', 'virtualmachineinstances', KUBEVIRT),
    right('list', 'ipamclaims', CLAIMS),
    right('list', 'namespaces'),
  ],
  [
    right('create', 'addresspools', OWN),
    right('patch', 'addresspools/status', OWN),
    right('create', 'addressleases', OWN),
    right('delete', 'addressleases', OWN),
    right('patch', 'ipamclaims/status', CLAIMS),
    right('list', 'network-attachment-definitions', CLAIMS),
    right('list', 'pods'),
  ],
];

/** The rights without which a process cannot do its work, by component. A test compares them with the manifests. */
export const NEEDED_RIGHTS: Readonly<Record<string, readonly Right[]>> = {
  controller: CONTROLLER,
  webhook: WEBHOOK,
  ipam: IPAM,
  all: [...CONTROLLER, ...WEBHOOK, ...IPAM],
  agent: [
    right('create', 'addressleases', OWN),
    right('list', 'addresspools', OWN),
    right('list', 'network-attachment-definitions', CLAIMS),
  ],
  guest: [
    right('list', 'virtualmachineinstances', KUBEVIRT),
    right('patch', 'ipamclaims/status', CLAIMS),
    right('create', 'secrets'),
    right('patch', 'secrets'),
  ],
};
