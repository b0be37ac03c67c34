import { joinKey, objectKey } from '../../api/meta.js';
import { DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION } from '../../api/names.js';
import {
  type NetworkSelection,
  NetworkSelectionError,
  defaultSelectionOf,
  interfaceNameOf,
  networkSelectionsOf,
} from '../../api/networks/network-selection.js';
import type { Clock } from '../../kube/clock.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { CniCode, CniError } from './cni-error.js';
import type { RequestContext } from './request-queue.js';
import type { NodePod, NodePods } from './node-pods.js';
import type { PoolLookup } from './pool-lookup.js';
import type { AddRequest, InterfaceRef } from './request.js';

/** A pod interface in one sandbox, for which an ADD requests addresses of a network. */
export interface Attachment extends InterfaceRef, Pick<AddRequest, 'network' | 'requested' | 'mac'> {
  readonly pod: NodePod;
  /** The element of the pod's annotations that names the NAD. */
  readonly selection: NetworkSelection;
}

/** Returns the user of a network that an attachment is. */
export function userOfAttachment({ pod, network, selection }: Pick<Attachment, 'pod' | 'network' | 'selection'>) {
  const nad = joinKey(selection.nad.namespace, selection.nad.name);
  return { namespace: pod.metadata.namespace, network, nad };
}

interface AttachmentResolverDeps {
  readonly pods: Pick<NodePods, 'find' | 'read'>;
  readonly lookup: Pick<PoolLookup, 'load'>;
  readonly clock: Pick<Clock, 'now'>;
  /** The namespace in which Multus looks for the NAD of a default network without a namespace. */
  readonly multusNamespace: string;
}

/**
 * Finds the NAD for which the plugin is called. Multus does not pass it on, so the network-selection element is found by the
 * interface name. The config on stdin must be that of the element's NAD.
 */
export class AttachmentResolver {
  readonly #deps: AttachmentResolverDeps;

  constructor(deps: AttachmentResolverDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the attachment of an ADD. Pod and NAD are read live if earlier reads do not match the request, because the runtime may know
   * newer versions.
   * @throws {CniError} 7 if no element of the pod is for the interface, or its NAD has another config; 11 if the NAD does not exist or
   * the API server does not answer; 100 if an annotation of the pod cannot be parsed
   */
  async resolve(request: AddRequest, call: RequestContext): Promise<Attachment> {
    const began = this.#deps.clock.now();
    const cached = await this.#deps.pods.find(request.pod, call);
    const selection = this.selectionFor(cached, request.interfaceName);
    if (selection !== undefined) {
      const attachment = attachmentOf(request, cached, selection);
      const nad = await this.#deps.lookup.load(userOfAttachment(attachment), call);
      if (nad !== undefined && mismatchOf(nad, request) === undefined) return attachment;
    }
    return this.#resolveLive(request, began, call);
  }

  /** Returns the network-selection element of an interface. @throws {CniError} 100 if an annotation of the pod cannot be parsed */
  selectionFor(pod: NodePod, interfaceName: string): NetworkSelection | undefined {
    const ofDefault = readAnnotation(DEFAULT_NETWORK_ANNOTATION, pod, () =>
      defaultSelectionOf(pod, this.#deps.multusNamespace),
    );
    const ofNetworks = readAnnotation(NETWORKS_ANNOTATION, pod, () => networkSelectionsOf(pod));
    const found = [...ofDefault, ...ofNetworks].filter((each) => interfaceNameOf(each) === interfaceName);
    if (found.length < 2) return found[0];
    throw new CniError(
      CniCode.Refused,
      `annotations ${DEFAULT_NETWORK_ANNOTATION} and ${NETWORKS_ANNOTATION} of pod ${objectKey(pod)} both name interface ` +
        `${interfaceName}: give each network its own "interface"`,
    );
  }

  /** @param since ignores reads before this time, in the clock's ms */
  async #resolveLive(request: AddRequest, since: number, call: RequestContext): Promise<Attachment> {
    const pod = await this.#deps.pods.read(request.pod, call);
    const selection = this.selectionFor(pod, request.interfaceName);
    const subject = `interface ${request.interfaceName} of pod ${objectKey(pod)}`;
    if (selection === undefined) {
      throw new CniError(
        CniCode.InvalidConfig,
        `${subject} is not in its annotations ${NETWORKS_ANNOTATION} and ${DEFAULT_NETWORK_ANNOTATION}, and Holdfast serves only ` +
          'the networks that these name: add the NetworkAttachmentDefinition there, or use another IPAM',
      );
    }
    const attachment = attachmentOf(request, pod, selection);
    const user = userOfAttachment(attachment);
    const nad = await this.#deps.lookup.load(user, call, since);
    if (nad === undefined) {
      throw new CniError(
        CniCode.TryAgain,
        `${subject} uses NetworkAttachmentDefinition ${user.nad}, which does not exist: create it, or correct the annotation`,
      );
    }
    const mismatch = mismatchOf(nad, request);
    if (mismatch === undefined) return attachment;
    throw new CniError(
      CniCode.InvalidConfig,
      `${subject} uses NetworkAttachmentDefinition ${user.nad}, but the CNI config of the runtime differs from it: ${mismatch}. ` +
        'If the NAD was changed just now, the next attempt succeeds; otherwise correct the network in the annotation of the pod',
    );
  }
}

function attachmentOf(request: AddRequest, pod: NodePod, selection: NetworkSelection): Attachment {
  const { containerId, interfaceName, network, requested, mac } = request;
  return { pod, containerId, interfaceName, network, selection, requested, mac };
}

/** Returns how the config of the request differs from that of the NAD; undefined if it does not. */
function mismatchOf({ config, pluginFingerprints, delegation }: ParsedNad, request: AddRequest): string | undefined {
  if (!config.ok) return `${config.problem.field} ${config.problem.message}`;
  if (request.prevResult !== undefined && delegation.kind === 'holdfast')
    return 'it has the plugin "holdfast" after one that delegates IPAM to Holdfast, which guards interfaces by itself: remove the plugin';
  const { name } = config.network;
  if (name !== request.network) return `the NAD names network "${name}", the config names "${request.network}"`;
  // the config is in a file on the node, so only the name can be compared
  if (pluginFingerprints === undefined || pluginFingerprints.includes(request.fingerprint ?? '')) return undefined;
  if (delegation.kind === 'other') return `the NAD delegates IPAM to ${delegation.type}`;
  return pluginFingerprints.length === 0
    ? 'the NAD does not delegate IPAM to Holdfast'
    : 'the plugin in the NAD has other keys or values';
}

function readAnnotation<T>(annotation: string, pod: NodePod, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof NetworkSelectionError)) throw error;
    const message = `annotation ${annotation} of pod ${objectKey(pod)} is invalid: ${error.message}`;
    throw new CniError(CniCode.Refused, message);
  }
}
