// The main function of a test program. Arguments that name source files choose the tests of those files:
//   rc_tests tests/unit/rc/rc_window_test.cpp --gtest_filter=...
// Without any, all tests run. A file without tests, or one that the program lacks, is an error.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <string>

namespace {

bool is_of(const testing::TestInfo& test, const std::string& file) {
    return std::filesystem::path(test.file()).filename() == std::filesystem::path(file).filename();
}

// Returns the tests of `file` as a filter of GoogleTest; empty if there are none.
std::string filter_of(const std::string& file) {
    std::string filter;
    const testing::UnitTest& all = *testing::UnitTest::GetInstance();
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
        const testing::TestSuite& suite = *all.GetTestSuite(i);
        for (int j = 0; j < suite.total_test_count(); ++j) {
            const testing::TestInfo& test = *suite.GetTestInfo(j);
            if (is_of(test, file)) {
                filter += std::string(suite.name()) + "." + test.name() + ":";
            }
        }
    }
    return filter;
}

}  // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    std::string filter;
    for (int i = 1; i < argc; ++i) {
        const std::string of_file = filter_of(argv[i]);
        if (of_file.empty()) {
            std::cerr << argv[0] << " has no test of " << argv[i] << '\n';
            return 2;
        }
        filter += of_file;
    }
    if (!filter.empty() && testing::GTEST_FLAG(filter) == "*") {
        testing::GTEST_FLAG(filter) = filter;
    }
    return RUN_ALL_TESTS();
}
