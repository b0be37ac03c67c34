import { expect } from 'chai';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { reviewNad } from './nad-review.js';
import { validationViewOf } from './testing/validation-view.js';

describe('the review of a NAD with ranges of whereabouts', () => {
  const network = (ipam: object) => nad('vms/n', holdfastConfig({ range: '10.0.0.0/24', ...ipam }));
  const warningsOf = (...given: Parameters<typeof network>[0][]) => {
    const [changed, oldNad] = given.map(network);
    return runAtOnce(reviewNad({ nad: changed!, ...(oldNad && { oldNad }) }, validationViewOf({}))).warnings;
  };
  const typing = { gateway: '10.0.1.1', exclude: ['10.0.0.7', '10.1.0.0/30', 'fd00::1'] };
  const warning = (key: string) => `${key} is in no range, so it has no effect: correct it, or remove it`;

  it('warns of a gateway and of exclusions that no range contains', () => {
    expect(warningsOf(typing)).to.deep.equal(
      ['gateway: "10.0.1.1"', 'exclude: "10.1.0.0/30"', 'exclude: "fd00::1"'].map((key) =>
        warning(`spec.config.ipam.${key}`),
      ),
    );
    expect(warningsOf({ gateway: '10.0.0.1', exclude: ['10.0.0.7', '10.0.0.0/28'] })).to.deep.equal([]);
  });

  it('warns of them once, when they are written', () => {
    expect(warningsOf(typing, {})).to.have.lengthOf(3);
    expect(warningsOf(typing, typing)).to.deep.equal([]);
  });
});
