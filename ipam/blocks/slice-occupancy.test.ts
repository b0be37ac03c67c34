import { expect } from 'chai';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { parseAddress } from '../../addressing/address/address.js';
import { formatCidr, parseCidr, rangesOf } from '../../addressing/address/cidr.js';
import { SliceOccupancy } from './slice-occupancy.js';

describe('the occupancy of slices', () => {
  it('finds a partly used slice after any number of assigned ones', () => {
    const ranges = ['10.0.0.0-10.4.0.3'];
    const pool = compiledPool({ subnets: [{ cidr: '10.0.0.0/8', ranges }], blockSize: { ipv4: 30 } });
    const used = [parseAddress('10.4.0.2').value];
    const use = new SliceOccupancy(pool, { occupiedIn: () => used, onChange: () => () => undefined });
    const lent = rangesOf([parseCidr('10.0.0.0/14')], 4);
    const found = [...use.unlent(4, lent)].map(({ cidr, free }) => `${formatCidr(cidr)} ${free}`);
    expect(found).to.deep.equal(['10.4.0.0/30 3']);
  });

  it('finds the next slice after a block that was lent when blocks of the pool were much larger', () => {
    const pool = compiledPool({ subnets: [{ cidr: 'fd00::/64' }], blockSize: { ipv6: 122 } });
    const use = new SliceOccupancy(pool, { occupiedIn: () => [], onChange: () => () => undefined });
    const [first] = use.unlent(6, rangesOf([parseCidr('fd00::/80')], 6));
    expect(first && formatCidr(first.cidr)).to.equal('fd00::1:0:0:0/122');
  });
});
