import {
  STARTING,
  STOPPED,
  agentPod,
  describeStories,
  eventOn,
  runningLauncher,
  tracedVmi,
} from '../testing/vm-story.js';

describeStories('the launchers in the story of a VM', [
  {
    title: 'a VM that is stopped and keeps its addresses',
    given: STOPPED,
    health: 'ok',
    includes: ['VirtualMachine vms/vm1: Stopped', 'IPAMClaim vms/vm1.data: 10.0.0.5/24'],
    excludes: ['VirtualMachineInstance'],
  },
  {
    title: 'a VM that migrates',
    given: {
      pods: [runningLauncher(), runningLauncher({ name: 'virt-launcher-vm1-target', node: 'n2', target: true })],
      agents: { n1: [agentPod()], n2: [agentPod()] },
    },
    health: 'ok',
    includes: [
      'VirtualMachineInstance vms/vm1: Running on n1, migrating',
      'Pod vms/virt-launcher-vm1-abcde: Running on n1, migration source',
      'Pod vms/virt-launcher-vm1-target: Running on n2, migration target',
    ],
  },
  {
    title: 'a VM whose launcher is refused',
    given: {
      vmi: tracedVmi({
        phase: 'Pending',
        conditions: [
          {
            ...{ type: 'Synchronized', status: 'False', reason: 'FailedCreate', lastTransitionTime: '' },
            message: 'admission webhook "launcher.holdfast" denied the request',
          },
        ],
      }),
      pods: [],
    },
    health: 'wrong',
    includes: ['wrong FailedCreate: no launcher pod: admission webhook "launcher.holdfast" denied the request'],
  },
  {
    title: 'a VM whose launcher is refused without a message',
    given: {
      vmi: tracedVmi({
        phase: 'Pending',
        conditions: [{ type: 'Synchronized', status: 'False', reason: 'FailedCreate' }],
      }),
      pods: [],
    },
    health: 'wrong',
    includes: ['wrong FailedCreate: no launcher pod: see the events and the log of virt-controller'],
  },
  {
    title: 'a VM of whose refused launcher only an event tells',
    given: { vmi: tracedVmi({ phase: 'Pending' }), pods: [], events: [eventOn('vm1', 'FailedCreate', 'denied')] },
    health: 'wrong',
    includes: ['wrong FailedCreate: denied'],
  },
  {
    title: 'a VM whose launcher waits on a node without a ready agent',
    given: {
      ...STARTING,
      agents: { n1: [agentPod('False', { reason: 'CrashLoopBackOff', message: 'back-off' })] },
      events: [eventOn('virt-launcher-vm1-abcde', 'FailedCreatePodSandBox', 'the agent of this node does not answer')],
    },
    health: 'wrong',
    includes: [
      'wrong FailedCreatePodSandBox: the agent of this node does not answer',
      'Node n1: agent not ready',
      'wrong agent holdfast-agent-x is not ready (CrashLoopBackOff: back-off): this pod waits',
    ],
  },
  {
    title: 'a VM that runs on a node without an agent',
    given: { agents: { n1: [] } },
    health: 'warning',
    includes: ['warning no agent of Holdfast runs on node n1: pods that run are not affected'],
  },
]);
