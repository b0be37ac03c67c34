import { type CheckReport, reportCheck } from '../doctor/check-report.js';
import { type Finding, errorOf } from '../doctor/finding.js';
import type { NodePair } from './pairs.js';
import type { AskedHost, PairResult, PodAttachment } from './pods.js';

/** What was found between two pods. */
export interface PairObservation {
  readonly from: PodAttachment;
  readonly to: PodAttachment;
  readonly result: PairResult;
}

/** Says what works between two nodes, and what does not. */
export function reportPair(pair: NodePair, { from, to, result }: PairObservation): CheckReport {
  const name = nameOfPair(pair);
  const message = `${from.addresses.join(', ')} → ${to.addresses.join(', ')}: address, ARP and ND, ping, packets of ${result.mtu} bytes`;
  if (result.error !== '') return failedPair(pair, 'connectivity', `the pod could not check it: ${result.error}`);
  const own = result.own.flatMap((host) => duplicatesOf(name, host, from.mac));
  const found = result.peers.flatMap((host) => findingsOf(name, host, to.mac, result.mtu));
  return reportCheck(name, message, [...own, ...found]);
}

export function nameOfPair({ from, to }: NodePair): string {
  return `${from} → ${to}`;
}

export function failedPair(pair: NodePair, check: string, problem: string, remedy = SEE_POD): CheckReport {
  const name = nameOfPair(pair);
  return reportCheck(name, '', [errorOf(check, name, problem, remedy)]);
}

const SEE_POD = 'see the events of the pod, and kubectl holdfast doctor';

function findingsOf(name: string, host: AskedHost, mac: string, mtu: number): Finding[] {
  const { address, macs, ping, fullSize } = host;
  const question = address.includes(':') ? 'a neighbour solicitation' : 'ARP';
  if (macs.length === 0) {
    const problem = `nobody answers ${question} for ${address}: frames do not pass between the nodes`;
    const remedy = 'check that both nodes have the bridge, interface or VLAN of the NAD, and that the switch passes it';
    return [errorOf('arp', name, problem, remedy)];
  }
  const duplicates = duplicatesOf(name, host, mac);
  if (!macs.includes(mac)) return duplicates;
  if (ping !== '') {
    const problem = `${address} answers ${question}, but not ping: ${ping}`;
    const remedy = 'check MAC filters, port security and firewalls between the nodes';
    return [...duplicates, errorOf('ping', name, problem, remedy)];
  }
  if (fullSize === '') return duplicates;
  const problem = `${address} answers a small ping, but none of ${mtu} bytes, the MTU of the interface: ${fullSize}`;
  const remedy = 'set the mtu of the NAD to what the network between the nodes passes, or raise that';
  return [...duplicates, errorOf('mtu', name, problem, remedy)];
}

function duplicatesOf(name: string, { address, macs }: AskedHost, rightful: string): Finding[] {
  const others = macs.filter((each) => each !== rightful);
  if (others.length === 0) return [];
  const problem = `${address} is also that of the host with MAC address ${others.join(', ')}`;
  const remedy = `find that host: kubectl holdfast who ${others[0] ?? ''}. Reserve the address if it is not a pod or VM`;
  return [errorOf('duplicates', name, problem, remedy)];
}
