import { join } from 'node:path';
import { expect } from 'chai';
import { POOL_BOUNDS } from '../api/bounds.js';
import { readManifests } from '../e2e/bed/objects.js';
import { MANIFESTS } from '../e2e/holdfast/manifests.js';
import type { Schema } from '../test/kind-shape.js';

describe('the bounds of a pool in the code', () => {
  it('are those of the CustomResourceDefinition', async () => {
    const [definition] = await readManifests(join(MANIFESTS, 'crds/addresspools.yaml'));
    const { versions } = (definition as unknown as { spec: { versions: { schema: { openAPIV3Schema: Schema } }[] } })
      .spec;
    const spec = versions[0]!.schema.openAPIV3Schema.properties!.spec!.properties!;
    const subnet = spec.subnets!.items!.properties!;
    expect(POOL_BOUNDS).to.deep.equal({
      subnets: spec.subnets!.maxItems,
      ranges: subnet.ranges!.maxItems,
      exclude: subnet.exclude!.maxItems,
      reserved: subnet.reserved!.maxItems,
      namespaces: spec.namespaces!.maxItems,
      nodeSelector: spec.nodeSelector!.maxProperties,
      cooldownSeconds: spec.cooldownSeconds!.maximum,
      name: spec.network!.maxLength,
      cidr: subnet.cidr!.maxLength,
      element: subnet.ranges!.items!.maxLength,
      gateway: subnet.gateway!.maxLength,
      ttl: spec.stickyMAC!.properties!.ttl!.maxLength,
      labelValue: spec.nodeSelector!.additionalProperties!.maxLength,
    });
    expect(spec.addressSpace!.maxLength).to.equal(POOL_BOUNDS.name);
    for (const list of [subnet.exclude, subnet.reserved]) {
      expect(list!.items!.maxLength).to.equal(POOL_BOUNDS.element);
    }
  });
});
