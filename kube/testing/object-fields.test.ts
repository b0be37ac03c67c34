import { expect } from 'chai';
import { join } from 'node:path';
import { readManifests } from '../../bed/control-plane/objects.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import { canSelectBy, hasStatus } from './object-fields.js';

interface Definition {
  readonly spec: {
    readonly names: { readonly plural: string };
    readonly versions: readonly { subresources?: { status?: object }; selectableFields?: { jsonPath: string }[] }[];
  };
}

describe('the API server in memory', () => {
  for (const file of ['addressblocks', 'addressleases', 'addresspools', 'ipamclaims']) {
    it(`knows the status subresource and the selectable fields of ${file}`, async () => {
      const [definition] = await readManifests(join(MANIFESTS, 'crds', `${file}.yaml`));
      const { names, versions } = (definition as unknown as Definition).spec;
      expect(hasStatus(names)).to.equal(versions[0]?.subresources?.status !== undefined);
      const fields = (versions[0]?.selectableFields ?? []).map(({ jsonPath }) => jsonPath.slice(1));
      expect(fields.filter((field) => !canSelectBy(names, field))).to.deep.equal([]);
      expect(canSelectBy(names, 'spec.other')).to.equal(false);
    });
  }
});
