import { expect } from 'chai';
import { announcement, PackageCount } from './go-build.js';

describe('The progress of a Go build', () => {
  const countOf = (total: number, ...lines: string[]) => {
    const count = new PackageCount(total);
    for (const line of lines) count.read(line);
    return count;
  };

  it('is the share of packages that the compiler has named', () => {
    const count = countOf(8, 'internal/goarch', 'k8s.io/api/core/v1', 'gopkg.in/yaml.v3');
    expect(count.text).to.equal('3 of 8 packages (37 %)');
    expect(countOf(8).text).to.equal('0 of 8 packages (0 %)');
  });

  it('counts a package once if two builds name it, and never exceeds 100 %', () => {
    expect(countOf(2, 'unsafe', 'unsafe').text).to.equal('1 of 2 packages (50 %)');
    expect(countOf(1, 'unsafe', 'sync').text).to.equal('1 of 1 packages (100 %)');
  });

  it('is a number of packages if their total is not known', () => {
    const count = new PackageCount();
    count.read('unsafe');
    expect(count.text).to.equal('1 packages');
  });

  it('keeps the messages of the compiler, without packages and downloads', () => {
    const lines = ['go: downloading k8s.io/api v0.34.4', 'sync', '# example.com/a', './a.go:3:2: undefined: b'];
    const count = countOf(9, ...lines);
    expect(count.messages).to.equal('# example.com/a\n./a.go:3:2: undefined: b');
    expect(count.text).to.equal('1 of 9 packages (11 %)');
  });
});

describe('The announcement of a Go build', () => {
  it('names what is built, how long that takes on this machine, and that it happens once', () => {
    expect(announcement(['etcd', 'Multus'], 2400, 2)).to.equal(
      'building etcd, Multus from source, which happens only once: 2400 packages, about 4 min on 2 cores',
    );
    expect(announcement(['etcd'], 2400, 8)).to.match(/about 1 min on 8 cores$/);
  });
});
