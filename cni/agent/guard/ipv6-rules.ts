import { PORTS, PROTOCOL, acceptParsed, dhcpServerRules, virtualRouterRules } from './ip-rules.js';
import {
  type Match,
  type Rule,
  type RuleChain,
  FIELDS,
  accept,
  between,
  drop,
  equals,
  equalsMasked,
  goTo,
  isIn,
  isNotIn,
} from './rule-set.js';

/** All extension headers but that of fragments: hop-by-hop, routing, AH, options, mobility, HIP and shim6. */
export const EXTENSION_HEADERS = [PROTOCOL.hopByHop, 43, 51, 60, 135, 139, 140];
const ICMPV6 = { query: 130, multicastRouter: 151 };
/** Types of ICMPv6. */
const DISCOVERY = { routerSolicitation: 133, router: 134, solicitation: 135, neighbour: 136, redirect: 137 };
/** Options of neighbour discovery with a MAC address: kind and length, in units of 8 bytes. */
const MAC_OPTION = { source: '0101', target: '0201' };
/** Multicast reports: MLDv1 report and done, MLDv2 report. */
const REPORTS = { first: 131, last: 132, version2: 143 };
const ANY_IPV6 = '0'.repeat(32);

/** Returns the chain of IPv6, and those that are reached from it. @param isShared guests may share allowed addresses */
export function ipv6Chains(isShared: boolean): RuleChain[] {
  return [ipv6Chain(isShared), withoutSourceChain(), discoveryChain()];
}

function ipv6Chain(isShared: boolean): RuleChain {
  const { ipv6Source, ipv6NextHeader, fragmentNextHeader, icmpv6Type, protocol } = FIELDS;
  const fragment = equals(ipv6NextHeader, PROTOCOL.fragment);
  const icmp = (type: number) => [equals(protocol, PROTOCOL.icmpv6), equals(icmpv6Type, type)];
  const discovery = between(icmpv6Type, DISCOVERY.routerSolicitation, DISCOVERY.redirect);
  const rules = [
    goTo('without_source', equals(ipv6Source, ANY_IPV6)),
    drop('ipv6_source', isNotIn(ipv6Source, 'ipv6'), isNotLinkLocal(ipv6Source)),
    ...dhcpServerRules(PORTS.dhcp6),
    ...reportRules(),
    drop('extension_header', isIn(ipv6NextHeader, 'extensions')),
    drop('extension_header', fragment, isIn(fragmentNextHeader, 'extensions')),
    drop('extension_header', fragment, equals(fragmentNextHeader, PROTOCOL.fragment)),
    goTo('discovery', equals(protocol, PROTOCOL.icmpv6), ...discovery),
    drop('multicast_router', ...icmp(ICMPV6.query)),
    drop('multicast_router', ...icmp(ICMPV6.multicastRouter)),
    drop('multicast_router', equals(protocol, PROTOCOL.pim)),
    ...virtualRouterRules(isShared),
    ...acceptParsed(),
  ];
  return { name: 'from_ipv6', rules };
}

/**
 * Neighbour discovery may name the guest's addresses only. A rule cannot search through options, so at most one passes, which is
 * all that hosts send. Fragments of it are forbidden (RFC 6980).
 */
function discoveryChain(): RuleChain {
  const { ipv6NextHeader, icmpv6Type, neighbourTarget } = FIELDS;
  const { router, solicitation, neighbour, redirect, routerSolicitation } = DISCOVERY;
  const isOf = (type: number) => equals(icmpv6Type, type);
  const hasLength = (bytes: number) => equals(FIELDS.ipv6Length, bytes);
  const { routerOption, routerOptionMac, neighbourOption, neighbourOptionMac } = FIELDS;
  const routerMac = [equals(routerOption, MAC_OPTION.source), isIn(routerOptionMac, 'macs')];
  const rules = [
    drop('router_advertisement', isOf(router)),
    drop('icmp_redirect', isOf(redirect)),
    drop('neighbour_target', { ...equals(ipv6NextHeader, PROTOCOL.icmpv6), op: '!=' }),
    accept(isOf(routerSolicitation), hasLength(8)),
    accept(isOf(routerSolicitation), hasLength(16), ...routerMac),
    drop('neighbour_target', isOf(neighbour), isNotIn(neighbourTarget, 'ipv6'), isNotLinkLocal(neighbourTarget)),
    accept(...between(icmpv6Type, solicitation, neighbour), hasLength(24)),
    accept(
      isOf(solicitation),
      hasLength(32),
      equals(neighbourOption, MAC_OPTION.source),
      isIn(neighbourOptionMac, 'macs'),
    ),
    accept(
      isOf(neighbour),
      hasLength(32),
      equals(neighbourOption, MAC_OPTION.target),
      isIn(neighbourOptionMac, 'macs'),
    ),
    drop('neighbour_target'),
  ];
  return { name: 'discovery', rules };
}

/** Without a source address, an interface may detect duplicates of its own addresses, find routers and join groups. */
function withoutSourceChain(): RuleChain {
  const { ipv6NextHeader, icmpv6Type, neighbourTarget } = FIELDS;
  const direct = equals(ipv6NextHeader, PROTOCOL.icmpv6);
  const solicitation = [direct, equals(icmpv6Type, DISCOVERY.solicitation)];
  const rules = [
    accept(...solicitation, isIn(neighbourTarget, 'ipv6')),
    accept(...solicitation, isLinkLocal(neighbourTarget)),
    accept(direct, equals(icmpv6Type, DISCOVERY.routerSolicitation)),
    ...reportRules(),
    drop('ipv6_source'),
  ];
  return { name: 'without_source', rules };
}

/** A multicast report has one hop-by-hop header of eight bytes (RFC 3810, section 5), and nothing else is accepted with one. */
function reportRules(): Rule[] {
  const { ipv6NextHeader, hopByHopNextHeader, hopByHopLength, protocol, icmpv6Type } = FIELDS;
  const report = [
    equals(ipv6NextHeader, PROTOCOL.hopByHop),
    equals(hopByHopNextHeader, PROTOCOL.icmpv6),
    equals(hopByHopLength, 0),
    equals(protocol, PROTOCOL.icmpv6),
  ];
  return [
    accept(...report, ...between(icmpv6Type, REPORTS.first, REPORTS.last)),
    accept(...report, equals(icmpv6Type, REPORTS.version2)),
  ];
}

function isLinkLocal(of: (typeof FIELDS)[keyof typeof FIELDS]): Match {
  return equalsMasked(of, `ffc0${'0'.repeat(28)}`, `fe80${'0'.repeat(28)}`);
}

function isNotLinkLocal(of: (typeof FIELDS)[keyof typeof FIELDS]): Match {
  return { ...isLinkLocal(of), op: '!=' };
}
