import { expect } from 'chai';
import type { ObservedFrame, PingResult, WireEvent } from '../wire-events.js';
import { countLosses, countMessages, countNeighbourMoves, countSwitchMoves } from './counts.js';

const STEPS = { pinged: 1000, added: 2000, prepared: 3000, moved: 4000 };
const SOURCE = 'port1';
const TARGET = 'port2';
const MAC = '02:00:00:00:00:07';
const IP = '192.168.50.7';

describe('The counts of a migration', () => {
  it('assign lost requests to steps, even if a series spans two steps', () => {
    const lossRuns = [
      { atMs: 500, count: 1 },
      { atMs: 1980, count: 5 }, // two in the set-up, three in the copy
      { atMs: 3000, count: 2 },
    ];
    const result = { lossRuns } as unknown as PingResult;
    expect(countLosses(result, STEPS, 10)).to.deep.equal({ before: 1, setUp: 2, copy: 3, after: 2 });
  });

  it('do not blame the copy for a request that was under way when the guest left', () => {
    const lossRuns = [
      { atMs: 2850, count: 1 },
      { atMs: 2950, count: 1 },
    ];
    const result = { lossRuns } as unknown as PingResult;
    expect(countLosses(result, STEPS, 10)).to.include({ copy: 1, after: 1 });
  });

  it('contain a MAC address that moves to another port and back', () => {
    const at = (atMs: number, port: string, mac = MAC): WireEvent => ({ atMs, learnt: { mac, port } });
    const events = [at(1500, SOURCE), at(2100, TARGET), at(2200, 'port3', '02:00:00:00:00:08'), at(2300, SOURCE)];
    events.push(at(2400, SOURCE), at(4100, TARGET));
    expect(countSwitchMoves(events, MAC, SOURCE, STEPS)).to.deep.equal({ before: 2, after: 1 });
  });

  it('contain changes of a neighbour table for the address, and no changes of its state', () => {
    const at = (atMs: number, mac: string, ip = IP): WireEvent => ({
      atMs,
      neighbour: { ip, mac, state: 'reachable', deleted: false },
    });
    const events = [at(2100, MAC), at(2200, ''), at(2300, 'other', '192.168.50.8'), at(2400, 'other')];
    events.push(at(4500, MAC));
    expect(countNeighbourMoves(events, IP, MAC, STEPS)).to.deep.equal({ before: 1, after: 1 });
  });

  it('contain messages of the target while it had its addresses', () => {
    const at = (atMs: number, more: Partial<ObservedFrame> = {}): WireEvent => ({
      atMs,
      frame: { kind: 'arp-request', mac: MAC, gratuitous: false, probe: false, outgoing: false, ...more },
    });
    const events = [at(1900), at(2100), at(2200), at(2300, { outgoing: true }), at(2400, { gratuitous: true })];
    events.push(at(2500, { kind: 'ndp-solicitation', probe: true }), at(3100));
    expect(countMessages(events, STEPS)).to.deep.equal({
      'arp-request': 2,
      'gratuitous arp-request': 1,
      'ndp-solicitation (probe)': 1,
    });
  });
});
